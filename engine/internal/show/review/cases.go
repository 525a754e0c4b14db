package review

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge/reviewed"
	"github.com/racflow/racflow/engine/internal/measure/doctor"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/show/explain"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/sdk"
)

// Case is one decision to make: about a text of a run's input, or a row of a knowledge.
type Case struct {
	ID   string `json:"id"` // set by NewQueue; the same in every review of the same text or row
	Text string `json:"text"`
	// Items lists the IDs of the run's items with this text, ignoring case and spaces. The first
	// item needs a decision; people see its details.
	Items []string `json:"items,omitempty"`
	// Row is the ID of the knowledge's row that a decision changes or drops; empty: the case is
	// about items.
	Row  string `json:"row,omitempty"`
	File string `json:"file,omitempty"` // the file with the row
	Line int    `json:"line"`           // in the input, or in File

	Why []string `json:"why"` // why a person should decide: sentences without full stops

	Answer     string  `json:"answer,omitempty"` // the run's answer or the row's label; may be a set of labels
	Expected   string  `json:"expected,omitempty"`
	Confidence float64 `json:"confidence,omitempty"` // as in result.Result
	Unknown    float64 `json:"unknown,omitempty"`
	Agreement  float64 `json:"agreement,omitempty"`
	// Suggestions lists the labels to choose from, the most likely first; for sets, the answer's labels come first.
	Suggestions []string `json:"suggestions"`
	Drop        bool     `json:"drop,omitempty"` // dropping the row is suggested

	doubt float64 // from 0 to 1
	order int     // position among cases with the same doubt
}

// idOf returns the ID of the case about a text or a row.
func idOf(text, row string) string { return reviewed.ID(source.Normal(text), row) }

// sort puts the most doubtful cases first.
func sort(cases []Case) {
	slices.SortStableFunc(cases, func(a, b Case) int {
		return cmp.Or(cmp.Compare(b.doubt, a.doubt), cmp.Compare(a.order, b.order))
	})
}

// suggest adds labels that are not yet among a case's suggestions.
func (c *Case) suggest(labels ...string) {
	for _, label := range labels {
		if label != "" && !slices.Contains(c.Suggestions, label) {
			c.Suggestions = append(c.Suggestions, label)
		}
	}
}

// OfFindings makes a case for each row with findings of racflow doctor that can be settled by another label or by
// dropping the row. Errors come first, then warnings. Equally severe cases are sorted by the voters' agreement on
// another label, highest first.
func OfFindings(s *doctor.Set) []Case {
	var cases []Case
	for i, d := range doctor.Doubts(s) {
		row := s.Rows[d.Row]
		if row.Held { // the row is held out of the knowledge, and a decision would add it
			continue
		}
		c := Case{
			ID: idOf(row.Text, row.Entry), Text: row.Text, Row: row.Entry, File: row.File, Line: row.Line, Why: d.Why, Answer: row.Label,
			Suggestions: []string{}, order: i, doubt: d.Sure / 4, // from 0 to 1/4
		}
		own := s.Form().Split(row.Label) // suggested, too, so that a person can confirm it
		if s.Form().Many {
			c.suggest(own...)
		}
		c.suggest(d.Labels...)
		c.suggest(own...)
		c.Drop = d.Copy && len(d.Labels) == 0
		switch d.Severity {
		case doctor.Error:
			c.doubt += .75
		case doctor.Warning:
			c.doubt += .375
		case doctor.Info:
		}
		cases = append(cases, c)
	}
	return cases
}

// ofRun makes a case for each text with an item to decide about, for example a doubtful item. Cases without
// an answer come first, then cases with the least confidence, or with the least agreement if the election
// estimates no confidence. keep gets each case's first item, with its details; an error of keep ends ofRun.
func ofRun(ctx context.Context, run *explain.Run, decide func(*explain.Brief) bool, keep func(Case, *explain.Item) error) ([]Case, error) {
	var cases []Case
	form := run.Manifest().LabelForm
	at := map[string]int{} // number of the case by normal text, from 1
	more := func(b *explain.Brief) bool {
		n := at[source.Normal(b.Text)]
		if n > 0 {
			cases[n-1].Items = append(cases[n-1].Items, b.ID)
		}
		return n > 0
	}
	var later []*explain.Brief // items that need no decision, and whose text had no case yet
	// Items that need no decision get no details: wanted adds them to their text's case, or to later.
	wanted := func(b *explain.Brief) bool {
		if !answered(b) {
			return false
		}
		if !decide(b) {
			if !more(b) {
				later = append(later, b)
			}
			return false
		}
		return true
	}
	for item, err := range run.Items(ctx, wanted) {
		if err != nil {
			return nil, err
		}
		if more(&item.Brief) {
			continue
		}
		c := caseOf(item, form)
		cases = append(cases, c)
		at[source.Normal(c.Text)] = len(cases)
		if err := keep(c, item); err != nil {
			return nil, err
		}
	}
	for _, b := range later {
		more(b)
	}
	return cases, nil
}

// answered reports whether the run has processed the item.
func answered(b *explain.Brief) bool { return b.Text != "" && b.Status != journal.Unreached }

// doubtful reports whether an item is flagged, failed or has no answer.
func doubtful(b *explain.Brief) bool { return b.Flagged || b.Error != nil || b.Answer == "" }

// doubtOf returns how doubtful an item's answer is, from 0 to 1.
func doubtOf(b *explain.Brief) float64 {
	if b.Answer == "" { // or the item failed
		return 1
	}
	return 1 - cmp.Or(b.Confidence, b.Agreement)
}

// maxVoted limits the suggestions from the answer and from voters.
const maxVoted = 6

func caseOf(item *explain.Item, form sdk.LabelForm) Case {
	c := Case{
		ID: idOf(item.Text, ""), Text: item.Text, Items: []string{item.ID}, Line: item.Line, Answer: string(item.Answer), Expected: item.Expected,
		Confidence: item.Confidence, Unknown: item.Unknown, Agreement: item.Agreement, Suggestions: []string{}, order: item.Line,
	}
	switch {
	case item.Error != nil:
		c.Why = append(c.Why, "it failed: "+item.Error.Error())
	case item.Answer == "":
		c.Why = append(c.Why, "it has no answer: "+cmp.Or(item.Reason, "no voter gave an acceptable one"))
	case item.Flagged:
		c.Why = append(c.Why, "it is flagged")
	}
	c.doubt = doubtOf(&item.Brief)
	var estimated []string
	for _, l := range item.Labels {
		estimated = append(estimated, l.Label)
	}
	if form.Many {
		c.suggest(estimated...) // the surest first
	}
	c.suggest(form.Split(string(item.Answer))...)
	answered := len(c.Suggestions)
	slices.Reverse(estimated) // the deepest node of a tree first
	c.suggest(append(estimated, item.RunnerUp)...)
	weights := map[string]float64{}
	var labels []string
	for _, v := range item.Votes {
		if weights[v.Answer] == 0 && v.Accepted {
			labels = append(labels, v.Answer)
		}
		if v.Accepted {
			weights[v.Answer] += v.Weight
		}
	}
	slices.SortStableFunc(labels, func(a, b string) int { return cmp.Compare(weights[b], weights[a]) })
	c.suggest(labels...)
	c.Suggestions = c.Suggestions[:min(len(c.Suggestions), max(maxVoted, answered))]
	c.suggest(form.Split(item.Expected)...)
	return c
}

// DefaultFile is the default name of the file of decisions, in the folder of the pipeline's file.
const DefaultFile = "reviewed.jsonl"

// Place is where the decisions about a knowledge are written.
type Place struct {
	Knowledge string
	Path      string // the file of decisions; absolute
	Add       string // lines to add to the knowledge's block, so that it reads the decisions; empty: none
}

// Find chooses among the knowledge blocks that a pipeline of the file searches: the block called name or, if
// name is empty, the only block made of rows or the only block with a source of decisions. A path that is not
// empty replaces the path in the file.
func Find(file string, blocks []*pipeline.Knowledge, name, path string) (Place, error) {
	var rows, reviewed []*pipeline.Knowledge
	var names []string
	for _, k := range blocks {
		if len(k.Sources) == 0 || k.Documents() != nil || name != "" && k.Name != name {
			continue
		}
		rows = append(rows, k)
		names = append(names, fmt.Sprintf("%q", k.Name))
		if k.Reviewed() != "" {
			reviewed = append(reviewed, k)
		}
	}
	switch {
	case len(rows) == 0 && name != "":
		return Place{}, fmt.Errorf("%s searches no knowledge %q that is made of rows; a collection that another program makes is only read", file, name)
	case len(rows) == 0:
		return Place{}, fmt.Errorf("%s searches no knowledge that is made of rows, and decisions are rows; a collection that another program makes is only read", file)
	case len(rows) > 1 && len(reviewed) != 1:
		return Place{}, errors.New("several are made of rows: say with --knowledge which one learns from the decisions: " + strings.Join(names, ", "))
	case len(rows) > 1:
		rows = reviewed
	}
	k := rows[0]
	file, err := filepath.Abs(file)
	if err == nil && path != "" {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return Place{}, err
	}
	p := Place{Knowledge: k.Name, Path: cmp.Or(path, k.Reviewed(), filepath.Join(filepath.Dir(file), DefaultFile))}
	if p.Path != k.Reviewed() {
		named := p.Path
		if rel, err := filepath.Rel(filepath.Dir(file), named); err == nil {
			named = filepath.ToSlash(rel)
		}
		p.Add = fmt.Sprintf("  source {\n    path     = %q\n    reviewed = true\n  }\n", named)
	}
	return p, nil
}
