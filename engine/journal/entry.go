package journal

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"math"

	"github.com/racflow/racflow/engine/journal/sealed"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/sdk"
)

// entry is a line of the journal.
type entry struct {
	Line       int        `json:"line"`
	ID         string     `json:"id"`
	Answer     *string    `json:"answer,omitempty"` // nil: the item failed
	Agreement  float64    `json:"agreement,omitempty"`
	Confidence float64    `json:"confidence,omitempty"`
	Flagged    bool       `json:"flagged,omitempty"`
	Reason     string     `json:"reason,omitempty"`
	Votes      []vote     `json:"votes,omitzero"`
	Citations  []citation `json:"citations,omitempty"`
	Tokens     [3]uint64  `json:"tokens,omitzero"` // in, cached of these, out
	Cost       float64    `json:"cost,omitempty"`
	// Spent is what each voter took. Tokens and cost are left out where they are its sum.
	Spent      map[string]spent  `json:"spent,omitempty"`
	Candidates []candidate       `json:"candidates,omitempty"`
	Missing    []string          `json:"missing,omitempty"` // voters that the answer is without
	Decided    *outcome.Decision `json:"decided,omitempty"` // by a person
	Unasked    *outcome.Bill     `json:"unasked,omitempty"`
	Asked      *outcome.Bill     `json:"asked,omitempty"`
	Stage      string            `json:"stage,omitempty"`
	Error      string            `json:"error,omitempty"`
	Expected   string            `json:"expected,omitempty"` // as the input said
	Basis      outcome.Basis     `json:"basis,omitzero"`
	From       string            `json:"from,omitempty"` // the run that gave the answer; empty: this one
	Seen       *Seen             `json:"seen,omitempty"`
}

type vote struct {
	Voter    string  `json:"voter"`
	Answer   string  `json:"answer"`
	Weight   float64 `json:"weight"`
	Accepted bool    `json:"accepted"`
	Reason   string  `json:"reason,omitempty"`

	Reading     string `json:"reading,omitempty"`
	Explanation string `json:"explanation,omitempty"`
	Model       string `json:"model,omitempty"`
}

type citation struct {
	Number int      `json:"number"`
	ID     string   `json:"id"`
	Meta   sdk.Meta `json:"meta,omitempty"` // of outcome.Origins
}

type candidate struct {
	ID      string   `json:"id"`
	Text    string   `json:"text,omitempty"`
	Label   string   `json:"label,omitempty"`
	Context string   `json:"context,omitempty"`
	Meta    sdk.Meta `json:"meta,omitempty"`
	Score   float32  `json:"score"`
	Dense   *float32 `json:"dense,omitempty"` // nil: not scored
	Lexical *float32 `json:"lexical,omitempty"`
}

// appendEntry appends a result as a line.
func appendEntry(b []byte, r *outcome.Result, keep Keep) ([]byte, error) {
	e := entry{Line: r.Line, ID: r.ID, Expected: r.Expected}
	if keep == KeepAll || Notable(r) {
		e.Seen = seen(r)
	}
	e.spend(r)
	if r.Failure != nil {
		e.Stage, e.Error = r.Failure.Stage, r.Failure.Err.Error()
		for _, v := range outcome.Heaviest(r.Votes) {
			e.Votes = append(e.Votes, vote(v))
		}
	} else {
		e.answer(r)
	}
	return e.append(b)
}

// append appends the line, sealed.
func (e *entry) append(b []byte) ([]byte, error) {
	from, line := len(b), bytes.NewBuffer(b)
	out := json.NewEncoder(line)
	out.SetEscapeHTML(false) // people read it, too
	if err := out.Encode(e); err != nil {
		return b, err
	}
	return sealed.Line(line.Bytes(), from), nil
}

// Copy adds the answers of another run over the same input to some of its items: as they stand
// there, but for what they took. The other run is open.
func (j *Journal) Copy(from *Journal, results []outcome.Result) error {
	var drafts [Failed + 1]draft
	d := &drafts[Answered]
	for i := range results {
		from.mu.Lock()
		e := from.shelves[Answered].entry(results[i].Line, from.Manifest.Format)
		from.mu.Unlock()
		if e == nil {
			continue // it was changed meanwhile: a resumed run answers the item
		}
		e.From, e.Tokens, e.Cost, e.Spent, e.Asked = cmp.Or(e.From, from.ID()), [3]uint64{}, 0, nil, nil
		at := len(d.text)
		var err error
		if d.text, err = e.append(d.text); err != nil {
			return err
		}
		d.add(e.Line, at)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.add(&drafts)
}

// answer fills in what the stages made of an item.
func (e *entry) answer(r *outcome.Result) {
	e.Answer, e.Agreement, e.Confidence, e.Flagged, e.Reason = &r.Answer, r.Agreement, r.Confidence, r.Flagged, r.Reason
	e.Votes = []vote{}
	for _, v := range outcome.Heaviest(r.Votes) {
		e.Votes = append(e.Votes, vote(v))
	}
	e.Citations = citationsOf(r.Citations)
	if usage, cost := e.took(); usage != r.Usage || cost != r.Cost {
		e.Tokens, e.Cost = [3]uint64{r.Usage.InputTokens, r.Usage.CachedTokens, r.Usage.OutputTokens}, r.Cost
	}
	e.Unasked, e.Asked, e.Decided = r.Unasked, r.Asked, r.Decided
	e.Basis, e.From = r.Basis, r.From
	if r.RetrievalOnly {
		for _, c := range r.Candidates {
			e.Candidates = append(e.Candidates, candidate{c.ID, c.Text, c.Label, c.Context, c.Meta, c.Score, scored(&c.Dense), scored(&c.Lexical)})
		}
	}
	if len(r.Missing) > 0 {
		e.Missing = r.Without()
	}
}

// citationsOf returns citations with what results show of their passages.
func citationsOf(given []outcome.Citation) []citation {
	all := make([]citation, len(given))
	for i, c := range given {
		all[i] = citation{c.Number, c.Passage.ID, nil}
		for _, key := range outcome.Origins {
			if value, ok := c.Passage.Meta[key]; ok {
				if all[i].Meta == nil {
					all[i].Meta = sdk.Meta{}
				}
				all[i].Meta[key] = value
			}
		}
	}
	return all
}

func scored(score *float32) *float32 {
	if math.IsNaN(float64(*score)) {
		return nil
	}
	return score
}

var errMissing = errors.New("it had to stop when the run was kept")

// result is what the line says of an item.
func (e *entry) result() outcome.Result {
	if e.Answer == nil {
		return outcome.Result{Failure: &outcome.Failure{Stage: e.Stage, Err: errors.New(e.Error)}}
	}
	usage, cost := e.took()
	if e.Tokens != [3]uint64{} || e.Cost != 0 {
		usage, cost = sdk.Usage{InputTokens: e.Tokens[0], CachedTokens: e.Tokens[1], OutputTokens: e.Tokens[2]}, e.Cost
	}
	r := outcome.Result{
		Answer: *e.Answer, Agreement: e.Agreement, Confidence: e.Confidence, Flagged: e.Flagged, Reason: e.Reason,
		Usage: usage, Cost: cost, Unasked: e.Unasked, Asked: e.Asked, Decided: e.Decided, Basis: e.Basis, From: e.From,
	}
	for _, stage := range e.Missing {
		r.Missing = append(r.Missing, &outcome.Failure{Stage: stage, Err: errMissing})
	}
	for _, v := range e.Votes {
		r.Votes = append(r.Votes, outcome.Vote(v))
	}
	for _, c := range e.Citations {
		r.Citations = append(r.Citations, outcome.Citation{
			Number: c.Number, Passage: sdk.Candidate{ID: c.ID, Meta: c.Meta, Dense: sdk.Unscored, Lexical: sdk.Unscored},
		})
	}
	for _, c := range e.Candidates {
		found := sdk.Candidate{
			ID: c.ID, Text: c.Text, Label: c.Label, Context: c.Context, Meta: c.Meta,
			Score: c.Score, Dense: sdk.Unscored, Lexical: sdk.Unscored,
		}
		if c.Dense != nil {
			found.Dense = *c.Dense
		}
		if c.Lexical != nil {
			found.Lexical = *c.Lexical
		}
		r.Candidates = append(r.Candidates, found)
	}
	return r
}
