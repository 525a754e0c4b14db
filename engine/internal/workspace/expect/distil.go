package expect

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/source"
)

// This file makes labelled rows from the sure answers of a run, so that a stage can learn what the
// run's voters know: knowledge distillation (Hinton, Vinyals and Dean, "Distilling the knowledge in
// a neural network", 2015) with labels that are hard and selected, as in self-training.
//
// Answers come from the run's journal, texts from its input, which must be unchanged. An item is
// left out if it has no answer, failed, lacks a voter, is flagged, or has a confidence below the
// bound. If the election estimates no confidence, the voters' agreement replaces it.
//
// A text that occurs several times is one row, of the surest answer. If the run ever answered it
// differently, however unsurely, its label is unknown, and it is left out.
//
// Each row says where its label is from: the run and its start, the pipeline, the confidence, and
// which voters and models gave that label, or who decided it.
//
// The package knows journals and rows. It runs no stage and asks for no answer.

// AnswerExport is the result of exporting the answers of a run.
type AnswerExport struct {
	Run   journal.Manifest
	Rows  []AnswerRow // in the order of the input
	Items int

	// Items left out.
	Unreached, Failed, Provisional, Undecided, Flagged, Unsure int
	Repeated                                                   int // their text already has a row
	Contradicted                                               int // their text also got another answer

	ByAgreement int     // of Rows: the election estimates no confidence
	Surest      float64 // highest confidence of an item that could have a row
}

// ReadAnswers makes rows of the answers of a run whose confidence is at least confident. It reads
// the run's input again.
func ReadAnswers(runs journal.Runs, run string, confident float64) (_ *AnswerExport, err error) {
	records, err := runs.Open(run)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, records.Close(nil)) }()
	m := records.Manifest
	if m.Answers != journal.LabelAnswers {
		return nil, fmt.Errorf("run %s answers with %s, and only labels can be exported", m.ID, m.Answers)
	}
	input, err := m.Rows()
	if err != nil {
		return nil, err
	}
	defer input.Close() //nolint:errcheck // it was only read
	c := collection{AnswerExport: AnswerExport{Run: m}, confident: confident, texts: map[string]*text{}, by: provenance(m)}
	for item, err := range records.Results(input.Next) {
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
	return &c.AnswerExport, nil
}

// collection is an export in progress.
type collection struct {
	AnswerExport
	confident float64
	texts     map[string]*text
	rows      []*text // in order of their first sure answer
	by        func(outcome.Result) AnswerRow
}

// text holds the run's answers to a text.
type text struct {
	answer string
	torn   bool      // the text got several answers
	sure   int       // items with a sure answer
	row    AnswerRow // of the surest item
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

// sure returns the confidence of an answer, rounded as a person sees it in results.
func sure(r outcome.Result) float64 { return round(cmp.Or(r.Confidence, r.Agreement)) }

func round(x float64) float64 { return math.Round(x*1e6) / 1e6 }

// finish makes a row of each text, each with its own id.
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

// AnswerRow is an answer as a row of a source. The fields after Label say where the label is from;
// a source keeps them as metadata.
type AnswerRow struct {
	ID         string  `json:"id"`
	Text       string  `json:"text"`
	Label      string  `json:"label"`
	Confidence float64 `json:"confidence,omitempty"` // 0: the election estimates none
	Agreement  float64 `json:"agreement"`
	Voters     string  `json:"voters"`           // whose first answer is the label, in file order; or the person who decided, and when
	Models     string  `json:"models,omitempty"` // that these voters asked, if known
	Pipeline   string  `json:"pipeline,omitempty"`
	Run        string  `json:"run"`
	Started    string  `json:"started"` // when the run began, RFC 3339

	line int
}

var columns = []string{"id", "text", "label", "confidence", "agreement", "voters", "models", "pipeline", "run", "started"}

// provenance returns a function that makes a row, without id, text and label, from a result.
func provenance(m journal.Manifest) func(outcome.Result) AnswerRow {
	models, doubtful := map[string]string{}, map[string]bool{}
	for _, s := range m.Stages {
		name, isVoter := strings.CutPrefix(s.Stage, "sample.")
		name, _, isFallback := strings.Cut(name, ", fallback.")
		switch {
		case !isVoter:
		case isFallback: // nobody knows whether the stage or its fallback answered
			doubtful[name] = true
		default:
			models[name] = s.Model
		}
	}
	return func(r outcome.Result) AnswerRow {
		row := AnswerRow{Confidence: round(r.Confidence), Agreement: round(r.Agreement), Pipeline: m.Pipeline, Run: m.ID, Started: m.Started.UTC().Format(time.RFC3339)}
		var asked []string
		agreed := agreeing(r)
		for _, voter := range agreed {
			if model := models[voter]; model != "" && !doubtful[voter] && !slices.Contains(asked, model) {
				asked = append(asked, model)
			}
		}
		if r.Decided != nil {
			row.Voters = r.Decided.String()
			return row
		}
		row.Voters, row.Models = strings.Join(agreed, ", "), strings.Join(asked, ", ")
		return row
	}
}

// agreeing names the voters whose first answer is the item's.
func agreeing(r outcome.Result) (agreed []string) {
	for _, top := range eval.TopAnswers(r.Form, r.Votes) {
		if top.Answer == r.Answer {
			agreed = append(agreed, top.Voter)
		}
	}
	return agreed
}

// WriteAnswers writes rows as a file that a source reads. The format is source.JSONL or source.TSV.
// In TSV, tabs and line ends of a text become spaces; in an id or a label they are an error.
func WriteAnswers(w io.Writer, format source.Format, rows []AnswerRow) error {
	if format != source.TSV {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		for _, r := range rows {
			if err := enc.Encode(r); err != nil {
				return err
			}
		}
		return nil
	}
	if _, err := fmt.Fprintln(w, strings.Join(columns, "\t")); err != nil {
		return err
	}
	for _, r := range rows {
		for _, name := range []string{r.ID, r.Label} {
			if strings.ContainsAny(name, "\t\r\n") {
				return fmt.Errorf("%q cannot be written as TSV, since it has a tab or a line end: write JSONL", name)
			}
		}
		confidence := ""
		if r.Confidence > 0 {
			confidence = decimal(r.Confidence)
		}
		fields := []string{r.ID, r.Text, r.Label, confidence, decimal(r.Agreement), r.Voters, r.Models, r.Pipeline, r.Run, r.Started}
		for i := range fields {
			fields[i] = spacedAnswer.Replace(fields[i])
		}
		if _, err := fmt.Fprintln(w, strings.Join(fields, "\t")); err != nil {
			return err
		}
	}
	return nil
}

var spacedAnswer = strings.NewReplacer("\t", " ", "\r\n", " ", "\n", " ", "\r", " ")

func decimal(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
