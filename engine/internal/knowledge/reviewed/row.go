package reviewed

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Row is a decision.
type Row struct {
	ID         string // see ID
	Text       string // empty only if the row drops another
	Label      string // empty: drops the row that it replaces
	Reviewer   string // who decided; empty: unknown
	ReviewedAt time.Time
	Run, Item  string // run and item of the decision; empty: none
	Was        string // the earlier answer or label; empty: none
	Replaces   string // the id of a row of another source; empty: an additional row
	Line       int    // line in the file, from 1
}

// Drops reports whether the row only removes another one.
func (r Row) Drops() bool { return r.Label == "" && r.Replaces != "" }

// ID derives the id of a decision from its subject: the row that it replaces or, if that is empty,
// the text.
func ID(text, replaces string) string {
	if replaces != "" {
		text = replaces
	}
	sum := sha256.Sum256([]byte(text))
	return "r-" + hex.EncodeToString(sum[:6])
}

// written is the JSON of a row.
type written struct {
	ID         string  `json:"id"`
	Text       string  `json:"text"`
	Label      *string `json:"label"`
	Reviewer   string  `json:"reviewer"`
	ReviewedAt string  `json:"reviewed_at"`
	Run        string  `json:"run,omitempty"`
	Item       string  `json:"item,omitempty"`
	Was        string  `json:"was,omitempty"`
	Replaces   string  `json:"replaces,omitempty"`
}

// line returns the row as a line of the file, with its end.
func (r Row) line() ([]byte, error) {
	w := written{ID: ID(r.Text, r.Replaces), Text: r.Text, Reviewer: r.Reviewer, Run: r.Run, Item: r.Item, Was: r.Was, Replaces: r.Replaces}
	if r.Label != "" {
		w.Label = &r.Label
	}
	if !r.ReviewedAt.IsZero() {
		w.ReviewedAt = r.ReviewedAt.UTC().Format(time.RFC3339)
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	err := e.Encode(w)
	return line.Bytes(), err
}

// MarshalJSON returns the row as a line of the file, without its end.
func (r Row) MarshalJSON() ([]byte, error) {
	line, err := r.line()
	return bytes.TrimSuffix(line, []byte("\n")), err
}

// UnmarshalJSON parses a line of the file. It ignores the id and derives it from the other fields,
// which a person may have edited.
func (r *Row) UnmarshalJSON(line []byte) error {
	if !utf8.Valid(line) {
		return errors.New("it is not valid UTF-8")
	}
	var w written
	if err := json.Unmarshal(line, &w); err != nil {
		return explained(err)
	}
	*r = Row{ID: ID(w.Text, w.Replaces), Text: w.Text, Reviewer: w.Reviewer, Run: w.Run, Item: w.Item, Was: w.Was, Replaces: w.Replaces}
	if w.Label != nil {
		r.Label = *w.Label
	}
	if w.ReviewedAt != "" {
		var err error
		if r.ReviewedAt, err = time.Parse(time.RFC3339, w.ReviewedAt); err != nil {
			if r.ReviewedAt, err = time.Parse(time.DateOnly, w.ReviewedAt); err != nil {
				return fmt.Errorf("reviewed_at is %q: write a time as 2026-11-23T10:00:00Z, or a day as 2026-11-23", w.ReviewedAt)
			}
		}
	}
	return r.check()
}

// explained turns an error of encoding/json into an explanation of what is wrong with a line.
func explained(err error) error {
	if kind := new(json.UnmarshalTypeError); errors.As(err, &kind) {
		if kind.Field == "" {
			return errors.New("it is not a JSON object")
		}
		return fmt.Errorf("%q is not a string", kind.Field)
	}
	if syntax := new(json.SyntaxError); errors.As(err, &syntax) {
		return fmt.Errorf("column %d: it is not JSON: %w", syntax.Offset, err)
	}
	return err
}

// check returns why a row is no decision.
func (r Row) check() error {
	switch {
	case r.Drops():
		return nil
	case strings.TrimSpace(r.Text) == "":
		return errors.New("it has no text")
	case r.Label == "":
		return errors.New(`it has no label: without one, "replaces" has to name the row that is dropped`)
	}
	return nil
}
