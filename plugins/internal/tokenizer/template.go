package tokenizer

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/racflow/racflow/plugins/internal/tokenizer/normalizer"
)

// template says which special tokens surround texts.
type template struct {
	single, pair []part
}

const (
	maxAdded    = 1 << 20 // tokens
	maxAddedLen = 512     // bytes of one
)

// addedToken is a token that is recognised wherever it occurs in a text.
type addedToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	Left       bool   `json:"lstrip"` // includes the white space before it
	Right      bool   `json:"rstrip"` // includes the white space after it
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

// readAddedList reads the "added_tokens" of a tokenizer.json, up to the maximum number.
func readAddedList(raw json.RawMessage) (tokens []addedToken, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if raw[0] != '[' {
		return nil, json.Unmarshal(raw, &tokens)
	}
	tokens = []addedToken{}
	err = eachElement(raw, func(element []byte) error {
		if len(tokens) == maxAdded {
			return fmt.Errorf("more than %d tokens", maxAdded)
		}
		var a addedToken
		if err := json.Unmarshal(element, &a); err != nil {
			return err
		}
		tokens = append(tokens, a)
		return nil
	})
	return tokens, err
}

// readAdded sets the added tokens. The library gives them the ids of the model, or the next free ids, whatever the
// file says. If the file has other ids, it is refused.
func (t *Tokenizer) readAdded(tokens []addedToken) error {
	ids := make(map[string]int32, len(tokens))
	t.added, t.normalized = newAddedTokens(), newAddedTokens()
	next := int32(t.model.Size())
	for _, a := range tokens {
		id, known := t.model.ID(a.Content)
		_, twice := ids[a.Content]
		switch {
		case a.Content == "":
			return fmt.Errorf("the token with id %d is empty", a.ID)
		case len(a.Content) > maxAddedLen:
			return fmt.Errorf("token %.40q... has %d bytes: %d are possible", a.Content, len(a.Content), maxAddedLen)
		case twice:
			return fmt.Errorf("token %.40q occurs twice", a.Content)
		case known && id != a.ID:
			return fmt.Errorf("token %.40q has id %d, in the model it has %d", a.Content, a.ID, id)
		case !known && a.ID != next:
			return fmt.Errorf("token %.40q has id %d: the next free one is %d", a.Content, a.ID, next)
		case !known:
			next++
		}
		ids[a.Content] = a.ID
		if !a.Normalized {
			t.added.add(a)
			continue
		}
		a.Content = t.normalizer.String(a.Content)
		if other, twice := t.normalized.tokens[a.Content]; twice {
			return fmt.Errorf("the tokens with ids %d and %d are both %.40q once they are normalised", other.ID, a.ID, a.Content)
		}
		if a.Content != "" {
			t.normalized.add(a)
		}
	}
	t.size = max(t.model.Size(), t.added.size, t.normalized.size)
	return nil
}

// addedTokens finds added tokens in a text.
type addedTokens struct {
	tokens  map[string]addedToken
	begins  [256]bool // first bytes of tokens
	lengths []int     // byte lengths of tokens, the longest first
	size    int       // the highest id plus one
}

func newAddedTokens() *addedTokens { return &addedTokens{tokens: map[string]addedToken{}} }

func (a *addedTokens) add(t addedToken) {
	a.tokens[t.Content] = t
	a.begins[t.Content[0]] = true
	a.size = max(a.size, int(t.ID)+1)
	at, known := slices.BinarySearchFunc(a.lengths, len(t.Content), func(a, b int) int { return cmp.Compare(b, a) })
	if !known {
		a.lengths = slices.Insert(a.lengths, at, len(t.Content))
	}
}

// found is a token in a text, with the white space that it includes.
type found struct {
	id         int32
	start, end int
}

// next returns the first token in s at or after byte at, and whether there is one. The text before at belongs to
// earlier tokens.
func (a *addedTokens) next(s string, at int) (found, bool) {
	for i := at; i < len(s) && len(a.tokens) > 0; {
		if !a.begins[s[i]] {
			i++
			continue
		}
		t, known := a.longest(s[i:])
		if !known {
			i++
			continue
		}
		end := i + len(t.Content)
		if t.SingleWord && (endsInWord(s[:i]) || beginsWithWord(s[end:])) {
			i = end
			continue
		}
		f := found{t.ID, i, end}
		if t.Left {
			f.start = at + len(strings.TrimRightFunc(s[at:i], normalizer.IsSpace))
		}
		if t.Right {
			f.end = len(s) - len(strings.TrimLeftFunc(s[end:], normalizer.IsSpace))
		}
		return f, true
	}
	return found{}, false
}

// around appends the ids of the tokens in a text, and calls others for the text between them, until there are limit
// ids.
func (a *addedTokens) around(ids []int32, s string, limit int, others func(ids []int32, at, end int) []int32) []int32 {
	for at := 0; at < len(s) && len(ids) < limit; {
		f, ok := a.next(s, at)
		if !ok {
			f.start, f.end = len(s), len(s)
		}
		if at < f.start {
			ids = others(ids, at, f.start)
		}
		if ok && len(ids) < limit {
			ids = append(ids, f.id)
		}
		at = f.end
	}
	return ids
}

// longest returns the longest token at the beginning of s.
func (a *addedTokens) longest(s string) (t addedToken, ok bool) {
	for _, n := range a.lengths {
		if n <= len(s) {
			if t, ok = a.tokens[s[:n]]; ok {
				break
			}
		}
	}
	return t, ok
}

func endsInWord(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return s != "" && normalizer.IsWord(r)
}

func beginsWithWord(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return s != "" && normalizer.IsWord(r)
}

// piece is a part of a template in tokenizer.json. Exactly one of its fields is set.
type piece struct {
	Sequence *struct {
		ID   string `json:"id"`
		Kind int    `json:"type_id"`
	}
	SpecialToken *struct {
		ID   string `json:"id"`
		Kind int    `json:"type_id"`
	}
}

func newTemplateProcessing(raw json.RawMessage) (t template, err error) {
	var f struct {
		Single, Pair []piece
		Specials     map[string]struct {
			IDs []int32 `json:"ids"`
		} `json:"special_tokens"`
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return t, err
	}
	parts := func(name string, pieces []piece, texts int) (all []part, err error) {
		if len(pieces) > maxTemplate {
			return nil, fmt.Errorf("%s has %d parts: %d are possible", name, len(pieces), maxTemplate)
		}
		count := [2]int{}
		last := 0
		for _, p := range pieces {
			var next part
			switch {
			case p.Sequence != nil && p.Sequence.ID == "A":
				next = part{kind: p.Sequence.Kind}
				count[0]++
			case p.Sequence != nil && p.Sequence.ID == "B":
				next = part{text: 1, kind: p.Sequence.Kind}
				count[1]++
			case p.SpecialToken != nil:
				s, ok := f.Specials[p.SpecialToken.ID]
				if !ok || len(s.IDs) == 0 || len(s.IDs) > maxSpecials {
					return nil, fmt.Errorf("%s uses the token %.40q, which special_tokens lacks", name, p.SpecialToken.ID)
				}
				next = part{ids: s.IDs, kind: p.SpecialToken.Kind}
			default:
				return nil, fmt.Errorf("%s has a part that is neither a sequence nor a special token", name)
			}
			if next.kind < last || next.kind > 1 {
				return nil, fmt.Errorf("%s has the type id %d after %d, which is not supported", name, next.kind, last)
			}
			last = next.kind
			all = append(all, next)
		}
		if count[0] != 1 || count[1] != texts-1 {
			return nil, fmt.Errorf("%s does not have each of its sequences once", name)
		}
		return all, nil
	}
	if t.single, err = parts("single", f.Single, 1); err != nil {
		return t, err
	}
	t.pair, err = parts("pair", f.Pair, 2)
	return t, err
}

// part is a text, or some special tokens.
type part struct {
	ids  []int32 // nil: a text
	text int     // 0 or 1
	kind int     // the segment, 0 or 1
}

const (
	maxTemplate = 64 // parts
	maxSpecials = 64 // tokens in one part
)

// added returns the number of special tokens in parts.
func added(parts []part) (n int) {
	for _, p := range parts {
		n += len(p.ids)
	}
	return n
}

func bertTemplate(cls, sep int32) template {
	c, s := part{ids: []int32{cls}}, part{ids: []int32{sep}}
	return template{
		single: []part{c, {}, s},
		pair:   []part{c, {}, s, {text: 1, kind: 1}, {ids: s.ids, kind: 1}},
	}
}

func robertaTemplate(cls, sep int32) template {
	c, s := part{ids: []int32{cls}}, part{ids: []int32{sep}}
	return template{single: []part{c, {}, s}, pair: []part{c, {}, s, s, {text: 1}, s}}
}

// newTemplate reads the "post_processor" of a tokenizer.json, which may be null. Its ids must be below size.
func newTemplate(raw json.RawMessage, size int) (template, error) {
	t := template{}
	if err := t.read(raw, size, 0); err != nil {
		return template{}, err
	}
	if t.single == nil {
		t = template{single: []part{{}}, pair: []part{{}, {text: 1, kind: 1}}}
	}
	return t, nil
}

func (t *template) read(raw json.RawMessage, size, depth int) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var f struct {
		Type       string
		Cls, Sep   special
		Processors []json.RawMessage
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return err
	}
	var read template
	switch f.Type {
	case "ByteLevel": // affects only offsets
		return nil
	case "Sequence":
		if depth > 8 {
			return errors.New("sequences in sequences")
		}
		for _, p := range f.Processors {
			if err := t.read(p, size, depth+1); err != nil {
				return err
			}
		}
		return nil
	case "BertProcessing":
		read = bertTemplate(f.Cls.id, f.Sep.id)
	case "RobertaProcessing":
		read = robertaTemplate(f.Cls.id, f.Sep.id)
	case "TemplateProcessing":
		var err error
		if read, err = newTemplateProcessing(raw); err != nil {
			return fmt.Errorf("TemplateProcessing: %w", err)
		}
	default:
		return fmt.Errorf("type %.40q is not supported", f.Type)
	}
	if t.single != nil {
		return errors.New("more than one that adds tokens is not supported")
	}
	*t = read
	for _, p := range append(read.single, read.pair...) {
		for _, id := range p.ids {
			if id < 0 || int(id) >= size {
				return fmt.Errorf("%s: id %d is beyond the vocabulary of %d tokens", f.Type, id, size)
			}
		}
	}
	return nil
}

// special is a token in the form ["[CLS]", 101].
type special struct{ id int32 }

// UnmarshalJSON reads the pair.
func (s *special) UnmarshalJSON(text []byte) error {
	var name string
	return json.Unmarshal(text, &[]any{&name, &s.id})
}
