package normalizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// maxSteps bounds the length of a sequence, maxDepth the nesting of sequences, and maxString the strings that are
// inserted into texts. maxGrowth bounds how often a text may have been multiplied before another step; a longer text
// is truncated.
const (
	maxSteps  = 64
	maxDepth  = 8
	maxString = 32
	maxGrowth = 16
)

// Normalizer changes texts. It is read-only and safe for concurrent use.
type Normalizer struct{ steps []step }

// step is one of the library's types. It changes a text that is not empty.
type step func(text string) string

// New reads the "normalizer" of a tokenizer.json, which may be null.
func New(raw json.RawMessage) (*Normalizer, error) {
	n := &Normalizer{}
	err := eachStep(raw, "normalizers", 0, func(kind string, raw json.RawMessage) error {
		s, err := newStep(kind, raw)
		if err != nil {
			return err
		}
		if n.steps = append(n.steps, s); len(n.steps) > maxSteps {
			return fmt.Errorf("more than %d steps", maxSteps)
		}
		return nil
	})
	return n, err
}

// eachStep calls f with the type and the JSON of each step of a normalizer or pre-tokenizer, which may be null. field
// is the name of a sequence's list of steps.
func eachStep(raw json.RawMessage, field string, depth int, f func(kind string, raw json.RawMessage) error) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var fields map[string]json.RawMessage
	var kind string
	var parts []json.RawMessage
	err := json.Unmarshal(raw, &fields)
	if err == nil && fields["type"] != nil {
		err = json.Unmarshal(fields["type"], &kind)
	}
	if err == nil && kind == "Sequence" && fields[field] != nil {
		err = json.Unmarshal(fields[field], &parts)
	}
	switch {
	case err != nil:
		return err
	case kind == "":
		return errors.New("a " + strings.TrimSuffix(field, "s") + " without a type is not supported")
	case kind != "Sequence":
		if err := f(kind, raw); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		return nil
	case depth == maxDepth:
		return fmt.Errorf("more than %d sequences in each other", maxDepth)
	}
	for _, part := range parts {
		if err := eachStep(part, field, depth+1, f); err != nil {
			return err
		}
	}
	return nil
}

func newStep(kind string, raw json.RawMessage) (step, error) {
	switch kind {
	case "BertNormalizer":
		b, err := ReadBERT(raw)
		return b.String, err
	case "Lowercase":
		return lower, nil
	case "NFC":
		return form(norm.NFC), nil
	case "NFD":
		return form(norm.NFD), nil
	case "NFKC":
		return form(norm.NFKC), nil
	case "NFKD":
		return form(norm.NFKD), nil
	case "StripAccents":
		return stripAccents, nil
	case "Strip":
		return newStrip(raw)
	case "Prepend":
		return newPrepend(raw)
	case "Replace":
		return newReplace(raw)
	case "Precompiled":
		return newPrecompiled(raw)
	case "ByteLevel":
		return byteLevel, nil
	}
	return nil, errors.New("this type of normalizer is not supported")
}

// String returns the normalised text, which may be empty.
func (n *Normalizer) String(text string) string {
	most := maxGrowth*len(text) + 4096
	for _, s := range n.steps {
		if text == "" {
			break
		}
		if len(text) > most {
			text = strings.ToValidUTF8(text[:most], "")
		}
		text = s(text)
	}
	return text
}

// None reports whether n changes nothing.
func (n *Normalizer) None() bool { return len(n.steps) == 0 }
