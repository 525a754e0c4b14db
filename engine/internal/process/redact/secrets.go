package redact

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
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

// Secrets holds the secrets known so far. The zero value holds none; its methods are safe for
// concurrent use.
type Secrets struct {
	adding sync.Mutex
	values []string            // sorted
	lines  map[string]struct{} // hidden lines
	some   atomic.Bool
	known  atomic.Pointer[known] // of all values; nil: built on the next use, since a file may add thousands
}

// formsOf returns a secret as it is, and as logs, JSON documents and addresses write it.
func formsOf(s string) []string {
	plain := quoted(s, false)
	return []string{
		s, plain, quoted(s, true), ascii(plain), strings.ReplaceAll(plain, "/", `\/`),
		unquoted(strconv.Quote(s)), unquoted(strconv.QuoteToASCII(s)), url.QueryEscape(s), url.PathEscape(s),
	}
}

// quoted returns a string as JSON writes it, without the quotes.
func quoted(s string, html bool) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	if err := e.Encode(s); err != nil {
		return s
	}
	return unquoted(strings.TrimSpace(b.String()))
}

// unquoted removes the surrounding quotes, but no quotes that the text ends with.
func unquoted(s string) string { return s[1 : len(s)-1] }

// ascii returns the inside of a JSON string as Python and others write it: characters beyond ASCII
// as UTF-16 in hex.
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

// Placeholder replaces a secret.
const Placeholder = "(secret)"

// Shortest is the minimum length in bytes of a secret that is replaced wherever it appears. A
// shorter one is part of many words: messages replace it only as a whole word, and results keep it,
// since replacing it would make them wrong.
const Shortest = 6

// known holds the forms to search for.
type known struct {
	long    replacer
	short   words
	hide    *strings.Replacer // replaces hidden lines
	longest int
}

// Add adds secrets. If a secret has several lines, each line is a secret, too.
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

// private replaces what Hide hides.
const private = "(private)"

// Hide makes Shown replace each line of a text. It is for texts that are not secret, but that do not
// concern the readers of a log.
func (s *Secrets) Hide(text string) {
	s.adding.Lock()
	defer s.adding.Unlock()
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if _, known := s.lines[line]; known || len(line) < Shortest {
			continue
		}
		if s.lines == nil {
			s.lines = map[string]struct{}{}
		}
		s.lines[line] = struct{}{}
		s.known.Store(nil)
		s.some.Store(true)
	}
}

// hider replaces lines; nil: there are none.
func hider(all map[string]struct{}) *strings.Replacer {
	if len(all) == 0 {
		return nil
	}
	lines := slices.Collect(maps.Keys(all))
	slices.SortFunc(lines, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) }) // the replacer uses the first form that matches
	var pairs []string
	for _, line := range lines {
		for _, form := range []string{line, quoted(line, false), unquoted(strconv.Quote(line))} {
			pairs = append(pairs, form, private)
		}
	}
	return strings.NewReplacer(pairs...)
}

// get returns the forms to search for; nil: there are no secrets.
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
	k.long, k.short, k.hide = newReplacer(long), newWords(short), hider(s.lines)
	s.known.Store(k)
	return k
}

// Message replaces every secret in a message for people; a short secret only as a whole word.
func (s *Secrets) Message(text string) string {
	if k := s.get(); k != nil {
		return k.short.replace(k.long.replace(text))
	}
	return text
}

// Shown is like Message, and replaces the lines that Hide was given.
func (s *Secrets) Shown(text string) string {
	text = s.Message(text)
	if k := s.get(); k != nil && k.hide != nil {
		return k.hide.Replace(text)
	}
	return text
}

// Result replaces secrets in a part of a result. Secrets of fewer than Shortest bytes stay, since
// results are also compared and searched.
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

// Longest returns the length in bytes of the longest form of a secret.
func (s *Secrets) Longest() int {
	if k := s.get(); k != nil {
		return k.longest
	}
	return 0
}

// replacer replaces forms of secrets. Most texts contain none. If the forms are few, searching for
// one at a time finds that out much faster than searching for all together.
type replacer struct {
	forms []*strings.Replacer // one per form that contains no other form; empty: there are more than few
	all   *strings.Replacer   // nil: there are no forms
}

// few is the maximum number of forms to search for one at a time.
const few = 64

func newReplacer(forms []string) replacer {
	if len(forms) == 0 {
		return replacer{}
	}
	// The replacer uses the first form that matches.
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

// words replaces forms of short secrets that are not part of a longer word.
type words struct {
	forms   map[string]bool
	lengths []int // of the forms, longest first
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

// replace keeps the placeholders that a text already contains.
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

// within reports whether a position is inside a word. Names of fields and headers, such as
// max_tokens and x-api-key, are one word.
func within(text string, at int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	after, _ := utf8.DecodeRuneInString(text[at:])
	return isWord(before) && isWord(after)
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '-' }
