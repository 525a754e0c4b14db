package normalizer

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/racflow/racflow/plugins/internal/tokenizer/bert"
	"github.com/racflow/racflow/plugins/internal/tokenizer/pattern"
)

// strip drops white space at the ends of a text.
type strip struct {
	Left  bool `json:"strip_left"`
	Right bool `json:"strip_right"`
}

func newStrip(raw json.RawMessage) (step, error) {
	var s strip
	err := json.Unmarshal(raw, &s)
	return s, err
}

func (s strip) apply(text string, e Edges) (string, bool) {
	length := len(text)
	if s.Left && !e.Start {
		text = strings.TrimLeftFunc(text, bert.IsSpace)
	}
	lost := len(text) < length
	if s.Right && !e.End {
		text = strings.TrimRightFunc(text, bert.IsSpace)
	}
	return text, lost
}

func (strip) local() bool { return true }

// prepend puts a string before a text.
type prepend string

func newPrepend(raw json.RawMessage) (step, error) {
	var f struct{ Prepend string }
	err := json.Unmarshal(raw, &f)
	if len(f.Prepend) > maxString {
		err = fmt.Errorf("the string is longer than %d bytes", maxString)
	}
	return prepend(f.Prepend), err
}

func (p prepend) apply(text string, e Edges) (string, bool) {
	if e.Start {
		return text, false
	}
	return string(p) + text, false
}

func (prepend) local() bool { return true }

// replace puts a string in place of what a pattern matches.
type replace struct {
	find *pattern.Pattern
	by   string
}

func newReplace(raw json.RawMessage) (step, error) {
	var f struct {
		Pattern json.RawMessage
		Content string
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, err
	}
	if len(f.Content) > maxString {
		return nil, fmt.Errorf("the content is longer than %d bytes", maxString)
	}
	find, err := pattern.New(f.Pattern)
	return replace{find, f.Content}, err
}

func (r replace) apply(text string, _ Edges) (string, bool) { return r.find.Replace(text, r.by) }

// local of a replacement of spaces needs that they stay what words are cut at.
func (r replace) local() bool {
	_, end := r.find.Next("a b", 0)
	return r.find.Local && (end < 0 || r.by == " " || r.by == "▁")
}
