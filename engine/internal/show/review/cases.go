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
)

// Case is one thing to decide: a text of a run's input, or a row of a knowledge.
type Case struct {
	ID   string `json:"id"` // set by NewQueue; the same in every review of the same text or row
	Text string `json:"text"`
	// Items are the ids of the run's items that have this text, but for case and spaces, in the
	// order of the input. The first one is looked at.
	Items []string `json:"items,omitempty"`
	// Row is the id of the row of a knowledge that a decision changes or drops; empty: the case is
	// about items.
	Row  string `json:"row,omitempty"`
	File string `json:"file,omitempty"` // in which the row stands
	Line int    `json:"line"`           // in the input, or in File

	Why []string `json:"why"` // why a person should decide: sentences without an end

	Answer     string  `json:"answer,omitempty"` // of the run, or the label of the row
	Expected   string  `json:"expected,omitempty"`
	Confidence float64 `json:"confidence,omitempty"` // as result.Result has it
	Agreement  float64 `json:"agreement,omitempty"`
	// Suggestions are the labels to choose from, the likeliest first.
	Suggestions []string `json:"suggestions"`
	Drop        bool     `json:"drop,omitempty"` // it is suggested to drop the row

	doubt float64 // from 0 to 1
	order int     // among those of the same doubt
}

// idOf names the case that a decision about a text or a row belongs to.
func idOf(text, row string) string { return reviewed.ID(doctor.Normal(text), row) }

// sort puts the most doubtful cases first.
func sort(cases []Case) {
	slices.SortStableFunc(cases, func(a, b Case) int {
		return cmp.Or(cmp.Compare(b.doubt, a.doubt), cmp.Compare(a.order, b.order))
	})
}

// suggest adds labels that are not among a case's suggestions yet.
func (c *Case) suggest(labels ...string) {
	for _, label := range labels {
		if label != "" && !slices.Contains(c.Suggestions, label) {
			c.Suggestions = append(c.Suggestions, label)
		}
	}
}

// OfFindings makes a case of each row that racflow doctor found something wrong with and that a person can
// correct: by another label, or by dropping it. Errors come first, then what voters are surest about.
func OfFindings(s *doctor.Set) []Case {
	var cases []Case
	for i, d := range doctor.Doubts(s) {
		row := s.Rows[d.Row]
		c := Case{
			ID: idOf(row.Text, row.Entry), Text: row.Text, Row: row.Entry, File: row.File, Line: row.Line, Why: d.Why, Answer: row.Label,
			Suggestions: slices.Clone(d.Labels), order: i, doubt: d.Sure / 4, // from 0 to 1/4
		}
		c.suggest(row.Label) // to say that it is right
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

// OfRun makes a case of each text of a run's items that is flagged or has no answer, also where its item
// failed. Those come first that have no answer, then those with the least confidence, or with the
// least agreement where the election estimates no confidence. keep is given each case's first
// item, with what made its answer; an error of it ends the work.
func OfRun(ctx context.Context, run *explain.Run, keep func(Case, *explain.Item) error) ([]Case, error) {
	if is := run.Manifest().Answers; is != journal.LabelAnswers && is != "" {
		return nil, fmt.Errorf("run %s answers with %s, and only labels can be reviewed", run.ID(), is)
	}
	var cases []Case
	at := map[string]int{} // by normal text, from 1
	more := func(b *explain.Brief) bool {
		n := at[doctor.Normal(b.Text)]
		if n > 0 {
			cases[n-1].Items = append(cases[n-1].Items, b.ID)
		}
		return n > 0
	}
	var later []*explain.Brief // of a text that is doubtful only further below
	wanted := func(b *explain.Brief) bool {
		if b.Text == "" || b.Status == journal.Unreached {
			return false
		}
		if !doubtful(b) {
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
		c := caseOf(item)
		cases = append(cases, c)
		at[doctor.Normal(c.Text)] = len(cases)
		if err := keep(c, item); err != nil {
			return nil, err
		}
	}
	for _, b := range later {
		more(b)
	}
	return cases, nil
}

func doubtful(b *explain.Brief) bool { return b.Flagged || b.Error != nil || b.Answer == "" }

// maxVoted is how many suggestions come from voters.
const maxVoted = 6

func caseOf(item *explain.Item) Case {
	c := Case{
		ID: idOf(item.Text, ""), Text: item.Text, Items: []string{item.ID}, Line: item.Line, Answer: string(item.Answer), Expected: item.Expected,
		Confidence: item.Confidence, Agreement: item.Agreement, Suggestions: []string{}, order: item.Line,
	}
	switch {
	case item.Error != nil:
		c.Why = append(c.Why, "it failed: "+item.Error.Error())
		c.doubt = 1
	case item.Answer == "":
		c.Why = append(c.Why, "it has no answer: "+cmp.Or(item.Reason, "no voter gave an acceptable one"))
		c.doubt = 1
	default:
		c.Why = append(c.Why, "it is flagged")
		c.doubt = 1 - cmp.Or(c.Confidence, c.Agreement)
	}
	c.suggest(string(item.Answer), item.RunnerUp)
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
	c.Suggestions = c.Suggestions[:min(len(c.Suggestions), maxVoted)]
	c.suggest(item.Expected)
	return c
}

// DefaultFile is the name of the file that decisions go to where the pipeline's file names none. It is
// made beside that one.
const DefaultFile = "reviewed.jsonl"

// Place is where decisions about a knowledge go.
type Place struct {
	Knowledge string
	Path      string // of the file with decisions; absolute
	Add       string // lines that the knowledge's block lacks, so that it reads them; empty: none
}

// Find says where decisions go, of a pipeline that searches these knowledge blocks in this file: of the one
// that is called name or, where that is empty, of the only one that is made of rows or the only one that
// has a source with decisions. path takes the place of what the file says; empty: what it says.
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
