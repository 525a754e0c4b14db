package redact

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// formsOf returns a secret as it is, and as logs, JSON documents and addresses
// write it.
func formsOf(s string) []string {
	plain := quoted(s, false)
	return []string{
		s, plain, quoted(s, true), ascii(plain), strings.ReplaceAll(plain, "/", `\/`),
		unquoted(strconv.Quote(s)), unquoted(strconv.QuoteToASCII(s)), url.QueryEscape(s), url.PathEscape(s),
	}
}

// quoted is a string inside a JSON document.
func quoted(s string, html bool) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	if err := e.Encode(s); err != nil {
		return s
	}
	return unquoted(strings.TrimSpace(b.String()))
}

// unquoted leaves out the quotes around a text, and not those that it ends with.
func unquoted(s string) string { return s[1 : len(s)-1] }

// ascii is the inside of a JSON string as Python and others write it: what is
// beyond ASCII as UTF-16 in hex.
func ascii(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// Placeholder stands in place of a secret.
const Placeholder = "(secret)"

// Shortest is how many bytes a secret has at least that is replaced wherever it stands. A shorter one is
// a part of many words: in messages it is replaced as a whole word, and in results, which would no longer be
// true, not at all.
const Shortest = 6

// Secrets are the secrets that are known so far. The zero value knows none; its
// methods may be called by several goroutines at once.
type Secrets struct {
	adding sync.Mutex
	values []string // sorted
	some   atomic.Bool
	known  atomic.Pointer[known] // of all values; nil: it is made when it is needed, since a file may add thousands
}

// known is what texts are searched for.
type known struct {
	long    replacer
	short   words
	longest int
}

// Add makes secrets known. Of one with several lines, each line is a secret, too.
func (s *Secrets) Add(values ...string) {
	s.adding.Lock()
	defer s.adding.Unlock()
	for _, value := range values {
		for _, v := range append(strings.Split(value, "\n"), value) {
			v = strings.TrimSpace(v)
			if at, known := slices.BinarySearch(s.values, v); v != "" && !known {
				s.values = slices.Insert(s.values, at, v)
				s.known.Store(nil)
				s.some.Store(true)
			}
		}
	}
}

// get returns what texts are searched for; nil: no secret is known.
func (s *Secrets) get() *known {
	if k := s.known.Load(); k != nil || !s.some.Load() {
		return k
	}
	s.adding.Lock()
	defer s.adding.Unlock()
	if k := s.known.Load(); k != nil {
		return k
	}
	k := &known{}
	var long, short []string
	for _, v := range s.values {
		forms := formsOf(v)
		for _, form := range forms {
			k.longest = max(k.longest, len(form))
		}
		if len(v) >= Shortest {
			long = append(long, forms...)
		} else {
			short = append(short, forms...)
		}
	}
	k.long, k.short = newReplacer(long), newWords(short)
	s.known.Store(k)
	return k
}

// Message replaces every secret in a message that people read, a short one where it is a whole word.
func (s *Secrets) Message(text string) string {
	if k := s.get(); k != nil {
		return k.short.replace(k.long.replace(text))
	}
	return text
}

// Result replaces the secrets in a part of a result: those of fewer than six bytes
// stay, since results are also compared and searched.
func (s *Secrets) Result(text string) string {
	if k := s.get(); k != nil {
		return k.long.replace(text)
	}
	return text
}

// InResults reports whether Result could replace anything.
func (s *Secrets) InResults() bool {
	k := s.get()
	return k != nil && k.long.all != nil
}

// Longest is how many bytes the longest form of a secret has.
func (s *Secrets) Longest() int {
	if k := s.get(); k != nil {
		return k.longest
	}
	return 0
}

// replacer replaces forms of secrets. Texts mostly hold none, which a search for one
// form at a time finds out much faster than the search for all, unless they are many.
type replacer struct {
	forms []*strings.Replacer // of one form each that holds no other; none: there are more than few
	all   *strings.Replacer   // nil: there are no forms
}

// few is how many forms are searched for one at a time.
const few = 64

func newReplacer(forms []string) replacer {
	if len(forms) == 0 {
		return replacer{}
	}
	// The replacer takes the first form that fits.
	slices.SortFunc(forms, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	forms = slices.Compact(forms)
	r := replacer{}
	pairs := make([]string, 0, 2*len(forms))
	for i, form := range forms {
		pairs = append(pairs, form, Placeholder)
		if len(forms) <= few && !slices.ContainsFunc(forms[i+1:], func(shorter string) bool { return strings.Contains(form, shorter) }) {
			r.forms = append(r.forms, strings.NewReplacer(form, Placeholder))
		}
	}
	r.all = strings.NewReplacer(pairs...)
	return r
}

func (r replacer) replace(text string) string {
	if r.all == nil {
		return text
	}
	if len(r.forms) == 0 {
		return r.all.Replace(text)
	}
	for _, form := range r.forms {
		if form.Replace(text) != text {
			return r.all.Replace(text)
		}
	}
	return text
}

// words replaces forms of short secrets where they are no part of a longer word.
type words struct {
	forms   map[string]bool
	lengths []int // of the forms, the longest first
}

func newWords(forms []string) words {
	w := words{forms: map[string]bool{}}
	for _, form := range forms {
		w.forms[form] = true
		w.lengths = append(w.lengths, len(form))
	}
	slices.SortFunc(w.lengths, func(a, b int) int { return cmp.Compare(b, a) })
	w.lengths = slices.Compact(w.lengths)
	return w
}

// replace leaves the placeholders that stand in a text already.
func (w words) replace(text string) string {
	if len(w.forms) == 0 {
		return text
	}
	parts := strings.Split(text, Placeholder)
	for i, part := range parts {
		parts[i] = w.replaceIn(part)
	}
	return strings.Join(parts, Placeholder)
}

func (w words) replaceIn(text string) string {
	var b strings.Builder
	kept := 0
	for at := 0; at < len(text); at++ {
		if within(text, at) {
			continue
		}
		for _, n := range w.lengths {
			if end := at + n; end <= len(text) && w.forms[text[at:end]] && !within(text, end) {
				b.WriteString(text[kept:at] + Placeholder)
				kept, at = end, end-1
				break
			}
		}
	}
	return b.String() + text[kept:]
}

// within reports whether a place is in the middle of a word. Names of fields and headers, as max_tokens and
// x-api-key, are one.
func within(text string, at int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	after, _ := utf8.DecodeRuneInString(text[at:])
	return isWord(before) && isWord(after)
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '-' }
