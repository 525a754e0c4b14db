package distil

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/journal/manifest"
	"github.com/racflow/racflow/engine/journal/runs"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/source"
)

// Export is what becomes of the items of a run.
type Export struct {
	Run   manifest.Manifest
	Rows  []Row // in the order of the input
	Items int

	// Items that are left out.
	Unreached, Failed, Provisional, Undecided, Flagged, Unsure int
	Repeated                                                   int // their text has a row
	Contradicted                                               int // their text was answered differently, too

	ByAgreement int     // of Rows: their election estimates no confidence
	Surest      float64 // of all items that could have a row
}

// Read makes rows of the answers of a run whose confidence is at least confident. It
// reads the run's input again.
func Read(runs runs.Runs, run string, confident float64) (_ *Export, err error) {
	book, err := runs.Open(run)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, book.Close(nil)) }()
	m := book.Manifest
	if m.Answers != manifest.Labels && m.Answers != "" {
		return nil, fmt.Errorf("run %s answers with %s, and only labels can be exported", m.ID, m.Answers)
	}
	input, err := m.Rows()
	if err != nil {
		return nil, err
	}
	defer input.Close() //nolint:errcheck // it was only read
	c := collection{Export: Export{Run: m}, confident: confident, texts: map[string]*text{}, by: provenance(m)}
	for item, err := range book.Results(input.Next) {
		if err != nil {
			return nil, err
		}
		c.Items++
		if item.Status == journal.Answered {
			c.add(item.Row, item.Result)
		} else {
			c.without(item.Status)
		}
	}
	c.finish()
	return &c.Export, nil
}

// collection is an export that is being made.
type collection struct {
	Export
	confident float64
	texts     map[string]*text
	rows      []*text // in order of their first sure answer
	by        func(outcome.Result) Row
}

// text is what the run made of a text.
type text struct {
	answer string
	torn   bool // there are others
	sure   int  // items with a sure answer
	row    Row  // of the surest
}

func (c *collection) without(why journal.Status) {
	switch why {
	case journal.Unreached:
		c.Unreached++
	case journal.Failed:
		c.Failed++
	case journal.Provisional:
		c.Provisional++
	}
}

func (c *collection) add(in source.Row, r outcome.Result) {
	if r.Answer == "" {
		c.Undecided++
		return
	}
	key := strings.TrimSpace(in.Text)
	t := c.texts[key]
	if t == nil {
		t = &text{answer: r.Answer}
		c.texts[key] = t
	}
	t.torn = t.torn || t.answer != r.Answer
	confidence := sure(r)
	if r.Flagged {
		c.Flagged++
		return
	}
	c.Surest = max(c.Surest, confidence)
	if confidence < c.confident {
		c.Unsure++
		return
	}
	if t.sure++; t.sure == 1 {
		c.rows = append(c.rows, t)
	} else if confidence <= cmp.Or(t.row.Confidence, t.row.Agreement) {
		return
	}
	t.row = c.by(r)
	t.row.ID, t.row.Text, t.row.Label, t.row.line = in.ID, in.Text, r.Answer, in.Line
}

// sure is how sure an answer is, rounded as results are: to what a person sees of it.
func sure(r outcome.Result) float64 { return round(cmp.Or(r.Confidence, r.Agreement)) }

func round(x float64) float64 { return math.Round(x*1e6) / 1e6 }

// finish makes rows of the texts, each with an id of its own.
func (c *collection) finish() {
	taken := map[string]bool{}
	for _, t := range c.rows {
		if t.torn {
			c.Contradicted += t.sure
			continue
		}
		c.Repeated += t.sure - 1
		row := t.row
		if row.ID == "" {
			row.ID = fmt.Sprint(row.line)
		}
		for taken[row.ID] {
			row.ID += fmt.Sprintf("#%d", row.line)
		}
		taken[row.ID] = true
		if row.Confidence == 0 {
			c.ByAgreement++
		}
		c.Rows = append(c.Rows, row)
	}
}
