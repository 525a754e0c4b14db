package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
)

// template says which special tokens stand around texts.
type template struct {
	single, pair []part
}

// part is a text or special tokens.
type part struct {
	ids  []int32 // nil: a text
	text int     // 0 or 1
	kind int     // the segment, 0 or 1
}

const (
	maxTemplate = 64 // parts
	maxSpecials = 64 // tokens in one part
)

// added is the number of special tokens in parts.
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

// newTemplate reads the "post_processor" of a tokenizer.json, which may be null. Its ids
// are below size.
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
	case "ByteLevel": // concerns offsets alone
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

// special is a token as ["[CLS]", 101].
type special struct{ id int32 }

// UnmarshalJSON reads the pair.
func (s *special) UnmarshalJSON(text []byte) error {
	var name string
	return json.Unmarshal(text, &[]any{&name, &s.id})
}
