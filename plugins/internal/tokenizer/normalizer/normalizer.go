package normalizer

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxSteps bounds the length of a sequence, maxDepth sequences in sequences, maxString what
// is put into texts, and maxGrowth how often a text may have been multiplied before another
// step: what a sequence makes beyond that is cut off.
const (
	maxSteps  = 64
	maxDepth  = 8
	maxString = 32
	maxGrowth = 16
)

// Normalizer changes texts. It is read-only and safe for concurrent use; nil changes
// nothing.
type Normalizer struct{ steps []step }

// step is one of the library's types.
type step interface {
	// apply returns the changed text, and whether its first character is gone. The text is not
	// empty.
	apply(text string, e Edges) (string, bool)
	// local reports whether a text that is cut before a single space between ASCII letters
	// comes out as the joined parts do.
	local() bool
}

// Edges says of a part of a text which of its ends are cuts in a longer one.
type Edges struct{ Start, End bool }

// New reads the "normalizer" of a tokenizer.json, which may be null.
func New(raw json.RawMessage) (*Normalizer, error) {
	n := &Normalizer{}
	if err := n.read(raw, 0); err != nil {
		return nil, err
	}
	return n, nil
}

func (n *Normalizer) read(raw json.RawMessage, depth int) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var f struct {
		Type        string
		Normalizers []json.RawMessage
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return err
	}
	if f.Type == "Sequence" {
		if depth == maxDepth {
			return fmt.Errorf("more than %d sequences in each other", maxDepth)
		}
		for _, part := range f.Normalizers {
			if err := n.read(part, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	s, err := newStep(f.Type, raw)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Type, err)
	}
	if n.steps = append(n.steps, s); len(n.steps) > maxSteps {
		return fmt.Errorf("more than %d steps", maxSteps)
	}
	return nil
}

func newStep(kind string, raw json.RawMessage) (step, error) {
	switch kind {
	case "BertNormalizer":
		return newBERT(raw)
	case "Lowercase":
		return mapped{lower}, nil
	case "NFC":
		return form(norm.NFC), nil
	case "NFD":
		return form(norm.NFD), nil
	case "NFKC":
		return form(norm.NFKC), nil
	case "NFKD":
		return form(norm.NFKD), nil
	case "StripAccents":
		return filter{isMark}, nil
	case "Nmt":
		return nmt{}, nil
	case "Strip":
		return newStrip(raw)
	case "Prepend":
		return newPrepend(raw)
	case "Replace":
		return newReplace(raw)
	case "Precompiled":
		return newPrecompiled(raw)
	case "ByteLevel":
		return mapped{ByteLevel}, nil
	case "":
		return nil, fmt.Errorf("a normalizer without a type is not supported")
	}
	return nil, fmt.Errorf("this type of normalizer is not supported")
}

// String returns the normalised text, and whether it begins with what the text begins
// with. It may be empty.
func (n *Normalizer) String(text string, e Edges) (string, bool) {
	whole, kept, most := text, true, maxGrowth*len(text)+4096
	for _, s := range n.steps {
		if text == "" {
			break
		}
		if len(text) > most {
			text = strings.ToValidUTF8(text[:most], "")
		}
		var lost bool
		text, lost = s.apply(text, e)
		kept = kept && !lost
	}
	if _, size := utf8.DecodeRuneInString(whole); !kept && size < len(whole) {
		// Space that the first character became may have been stripped, and not all of it.
		rest, _ := n.String(whole[:size], e)
		kept = rest != ""
	}
	return text, kept
}

// BERT returns the BertNormalizer that n is, or nil.
func (n *Normalizer) BERT() *Bert {
	if len(n.steps) == 1 {
		if b, ok := n.steps[0].(bertStep); ok {
			return &b.Bert
		}
	}
	return nil
}

// Local reports whether a text that is cut before a single space between ASCII letters
// comes out as the joined parts do, with the cuts as their edges.
func (n *Normalizer) Local() bool {
	for _, s := range n.steps {
		if !s.local() {
			return false
		}
	}
	return true
}
