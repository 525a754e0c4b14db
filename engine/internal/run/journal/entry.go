package journal

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk"
)

// entry is a line of the journal.
type entry struct {
	Line            int           `json:"line"`
	ID              string        `json:"id"`
	Answer          *string       `json:"answer,omitempty"` // nil: the item failed
	*result.Verdict               // nil: the item failed, or its answer has none of this
	Votes           []result.Vote `json:"votes,omitzero"`
	Citations       []citation    `json:"citations,omitempty"`
	Tokens          [3]uint64     `json:"tokens,omitzero"` // input tokens, cached input tokens, output tokens
	Cost            float64       `json:"cost,omitempty"`
	// Spent is the usage and cost of each voter. Tokens and Cost are omitted if they are its sum.
	Spent      map[string]spent `json:"spent,omitempty"`
	Candidates []candidate      `json:"candidates,omitempty"`
	Missing    []string         `json:"missing,omitempty"` // voters missing from the answer
	Unasked    *outcome.Bill    `json:"unasked,omitempty"`
	Asked      *outcome.Bill    `json:"asked,omitempty"`
	Stage      string           `json:"stage,omitempty"`
	Error      string           `json:"error,omitempty"`
	Expected   string           `json:"expected,omitempty"` // label in the input
	Seen       *Seen            `json:"seen,omitempty"`
	Collected  []string         `json:"collected,omitempty"` // as in outcome.Result: a killed process leaves handles
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
		if len(r.Votes) > 0 {
			e.Votes = outcome.Heaviest(r.Votes)
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
	out.SetEscapeHTML(false) // people read the file, too
	if err := out.Encode(e); err != nil {
		return b, err
	}
	return SealLine(line.Bytes(), from), nil
}

// Adopt copies an item's line, unchanged, from another open run over the same input.
func (j *Journal) Adopt(from *Journal, item Item) error {
	e := from.line(item.Status, item.Row.Line)
	if e == nil {
		return nil // no answered item, or the line was changed meanwhile: a resumed run answers it
	}
	text, err := e.append(nil)
	if err != nil {
		return err
	}
	var drafts [Failed + 1]draft
	drafts[item.Status].text = text
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.add(&drafts)
}

// line returns the entry of an item with this status; nil: there is none, or the line was changed.
func (j *Journal) line(status Status, line int) *entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.files[status].entry(line)
}

// answer sets the parts of a result that the stages made.
func (e *entry) answer(r *outcome.Result) {
	e.Answer, e.Verdict = &r.Answer, &r.Verdict
	e.Votes = outcome.Heaviest(r.Votes)
	e.Citations = citationsOf(r.Citations)
	if usage, cost := e.took(); usage != r.Usage || cost != r.Cost {
		e.Tokens, e.Cost = [3]uint64{r.Usage.InputTokens, r.Usage.CachedTokens, r.Usage.OutputTokens}, r.Cost
	}
	e.Unasked, e.Asked = r.Unasked, r.Asked
	if r.RetrievalOnly {
		for _, c := range r.Candidates {
			e.Candidates = append(e.Candidates, candidate{c.ID, c.Text, c.Label, c.Context, c.Meta, c.Score, scored(&c.Dense), scored(&c.Lexical)})
		}
	}
	if e.Missing = r.Without(); len(e.Missing) == 0 {
		e.Collected = r.Collected
	}
}

// citationsOf converts citations, and keeps only the parts of passages that results show.
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

// result returns the line as a result.
func (e *entry) result() outcome.Result {
	usage, cost := e.took()
	if e.Answer == nil {
		return outcome.Result{Failure: &outcome.Failure{Stage: e.Stage, Err: errors.New(e.Error)}, Usage: usage, Cost: cost}
	}
	if e.Tokens != [3]uint64{} || e.Cost != 0 {
		usage, cost = sdk.Usage{InputTokens: e.Tokens[0], CachedTokens: e.Tokens[1], OutputTokens: e.Tokens[2]}, e.Cost
	}
	r := outcome.Result{
		Answer: *e.Answer, Verdict: *cmp.Or(e.Verdict, &result.Verdict{}),
		Usage: usage, Cost: cost, Unasked: e.Unasked, Asked: e.Asked, Votes: e.Votes, Collected: e.Collected,
	}
	for _, stage := range e.Missing {
		r.Missing = append(r.Missing, &outcome.Failure{Stage: stage, Err: errMissing})
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

// List holds the candidates that a retrieve or rerank stage left, best first.
type List struct {
	Stage string
	Whole bool // the whole knowledge: Found is nil
	Found []Scored
}

// Lists are the lists of an item. Candidates are many, so their JSON is short:
//
//	["id", score]                  one leg of a search found the candidate, or nothing scored it
//	["id", score, dense, lexical]  both legs were asked; null: that leg did not score it
//	[3, score]                     a reranked candidate: the fourth of the candidates listed before
//
// Scores of legs are rounded to four decimals; other scores are exact.
type Lists []List

// Scored is a candidate with its scores: the score after fusion or reranking, and the scores of the
// search's legs, or sdk.Unscored.
type Scored struct {
	ID                    string
	Score, Dense, Lexical float32
}

// listsOf returns the lists of a result; nil: none has candidates.
func listsOf(all []outcome.List) (lists Lists) {
	for _, l := range all {
		if len(l.Candidates) == 0 {
			continue
		}
		list := List{Stage: l.Stage, Whole: l.Whole}
		if !l.Whole {
			list.Found = make([]Scored, len(l.Candidates))
			for i, c := range l.Candidates {
				list.Found[i] = Scored{c.ID, c.Score, c.Dense, c.Lexical}
			}
		}
		lists = append(lists, list)
	}
	return lists
}

// listLine is a List in a line of the journal.
type listLine struct {
	Stage string              `json:"stage"`
	Whole bool                `json:"whole,omitempty"`
	Found [][]json.RawMessage `json:"found,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (l Lists) MarshalJSON() ([]byte, error) {
	at := map[string]int{}
	lines := make([]struct {
		Stage string  `json:"stage"`
		Whole bool    `json:"whole,omitempty"`
		Found [][]any `json:"found,omitempty"`
	}, len(l))
	for i, list := range l {
		lines[i].Stage, lines[i].Whole = list.Stage, list.Whole
		for _, c := range list.Found {
			if n, above := at[c.ID]; above {
				lines[i].Found = append(lines[i].Found, []any{n, c.Score})
				continue
			}
			at[c.ID] = len(at)
			one := []any{c.ID, c.Score}
			if legs := [2]any{rounded(c.Dense), rounded(c.Lexical)}; !alone(c) && legs != [2]any{} {
				one = append(one, legs[0], legs[1])
			}
			lines[i].Found = append(lines[i].Found, one)
		}
	}
	return json.Marshal(lines)
}

// alone reports whether a candidate has the score of the only leg that scored it.
func alone(c Scored) bool {
	noDense, noLexical := math.IsNaN(float64(c.Dense)), math.IsNaN(float64(c.Lexical))
	return noLexical && c.Dense == c.Score || noDense && c.Lexical == c.Score
}

// rounded returns a leg's rounded score; nil: the leg gave none.
func rounded(score float32) any {
	if math.IsNaN(float64(score)) || math.IsInf(float64(score), 0) {
		return nil
	}
	return math.Round(float64(score)*1e4) / 1e4
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *Lists) UnmarshalJSON(text []byte) error {
	var lines []listLine
	if err := json.Unmarshal(text, &lines); err != nil {
		return err
	}
	*l = nil
	var known []Scored
	for _, line := range lines {
		list := List{Stage: line.Stage, Whole: line.Whole}
		for _, one := range line.Found {
			c, err := scoredOf(one, &known)
			if err != nil {
				return err
			}
			list.Found = append(list.Found, c)
		}
		*l = append(*l, list)
	}
	return nil
}

// scoredOf reads a candidate and adds it to the known candidates, which later lists refer to by
// number.
func scoredOf(one []json.RawMessage, known *[]Scored) (c Scored, err error) {
	if len(one) < 2 {
		return c, fmt.Errorf("a candidate has an id and a score, and not %d values", len(one))
	}
	above := 0
	if json.Unmarshal(one[0], &above) == nil {
		if above < 0 || above >= len(*known) {
			return c, fmt.Errorf("no list above has a candidate %d", above)
		}
		c = (*known)[above]
		return c, json.Unmarshal(one[1], &c.Score)
	}
	c.Dense, c.Lexical = sdk.Unscored, sdk.Unscored
	if err := json.Unmarshal(one[0], &c.ID); err != nil {
		return c, err
	}
	if err := json.Unmarshal(one[1], &c.Score); err != nil {
		return c, err
	}
	for i, leg := range []*float32{&c.Dense, &c.Lexical} {
		if len(one) < 4 || string(one[2+i]) == "null" {
			continue
		}
		if err := json.Unmarshal(one[2+i], leg); err != nil {
			return c, err
		}
	}
	*known = append(*known, c)
	return c, nil
}
