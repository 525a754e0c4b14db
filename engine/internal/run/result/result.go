package result

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
)

// Result is the result of one item. New fields may come at any time.
type Result struct {
	ID       string `json:"id"`
	Text     string `json:"text"`
	Expected string `json:"expected,omitempty"` // the input's label, if any
	Answer   Answer `json:"answer"`
	Verdict
	Missing    []string    `json:"missing,omitempty"` // voters that had to stop: the others gave the answer
	Citations  []Citation  `json:"citations,omitempty"`
	Votes      []Vote      `json:"votes"`
	Candidates []Candidate `json:"candidates,omitempty"` // in a pipeline without an election
	Error      *Failure    `json:"error,omitempty"`      // set: the item failed
	// Fields are the input's columns besides id, text and label, in order.
	Fields Fields `json:"fields,omitempty"`

	// Usage of the answers as the voters report it, and its cost by the file's prices. Both
	// describe this run rather than the item, so JSON omits them.
	Usage sdk.Usage `json:"-"`
	Cost  float64   `json:"-"`
}

// Answer is an elected answer; empty, and null in JSON: there is no acceptable one.
type Answer string

// MarshalJSON implements json.Marshaler. The calling encoder decides whether to escape HTML.
func (a Answer) MarshalJSON() ([]byte, error) {
	if a == "" {
		return []byte("null"), nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(string(a))
	return b.Bytes(), err
}

// Verdict is what is known of an answer. Its shares and probabilities are rounded.
type Verdict = outcome.Verdict

// Vote is one answer of one voter.
type Vote = outcome.Vote

// Candidate is a retrieved entry.
type Candidate struct {
	ID      string   `json:"id"`
	Text    string   `json:"text"`
	Label   string   `json:"label,omitempty"`
	Score   float64  `json:"score"`
	Dense   *float64 `json:"dense,omitempty"` // nil: not scored
	Lexical *float64 `json:"lexical,omitempty"`
	Meta    sdk.Meta `json:"meta,omitempty"`
}

// Citation is a passage that an answer cites: its number, id and origin.
type Citation struct {
	Number    int    `json:"number"`
	ID        string `json:"id"`
	Path      any    `json:"path,omitempty"`
	Title     any    `json:"title,omitempty"`
	Headings  any    `json:"headings,omitempty"`
	FirstLine any    `json:"first_line,omitempty"`
	LastLine  any    `json:"last_line,omitempty"`
	FirstPage any    `json:"first_page,omitempty"`
	LastPage  any    `json:"last_page,omitempty"`
}

// Failure says where and why an item failed.
type Failure struct {
	File    string `json:"file,omitempty"`  // file of a glob; empty: the input is one file
	Line    int    `json:"line"`            // in the file
	Stage   string `json:"stage,omitempty"` // as "sample.knn"; empty: the item itself is unusable
	Message string `json:"message"`
}

func (f *Failure) Error() string {
	if f.Stage == "" || strings.HasPrefix(f.Message, f.Stage+": ") {
		return f.Message
	}
	return fmt.Sprintf("%s: %s", f.Stage, f.Message)
}

// Of returns the result of an item.
func Of(r outcome.Result) Result {
	out := Result{
		ID: r.ID, Text: strings.ToValidUTF8(r.Text, "\uFFFD"), Expected: r.Expected, Verdict: r.Verdict, Missing: r.Without(),
		Votes: Votes(r.Votes), Fields: r.Fields, Usage: r.Usage, Cost: r.Cost,
	}
	out.Agreement, out.Confidence, out.Unknown = round(r.Agreement), round(r.Confidence), round(r.Unknown)
	out.Labels = slices.Clone(r.Labels)
	for i := range out.Labels {
		out.Labels[i].Confidence = round(out.Labels[i].Confidence)
	}
	if r.Failure != nil {
		out.Error = &Failure{r.File, cmp.Or(r.FileLine, r.Line), r.Failure.Stage, r.Failure.Err.Error()}
	} else if out.Answer = Answer(r.Answer); r.Answer != "" && !r.FreeText && !r.Form.Many {
		out.RunnerUp = runnerUp(outcome.Heaviest(r.Votes), r.Answer)
	}
	for _, c := range r.Citations {
		m := c.Passage.Meta
		out.Citations = append(out.Citations, Citation{
			c.Number, c.Passage.ID, m["path"], m["title"], m["headings"],
			m["first_line"], m["last_line"], m["first_page"], m["last_page"],
		})
	}
	if r.RetrievalOnly {
		out.Candidates = Candidates(r.Candidates)
	}
	return out
}

// Votes returns the votes of an item as results show them.
func Votes(votes []outcome.Vote) []Vote {
	all := outcome.Heaviest(votes)
	for i := range all {
		all[i].Weight = round(all[i].Weight)
	}
	return all
}

// Candidates returns the candidates of an item as results show them, best first.
func Candidates(found []sdk.Candidate) []Candidate {
	var all []Candidate
	for _, c := range found {
		all = append(all, Candidate{
			ID: c.ID, Text: c.Text, Label: c.Label, Meta: c.Meta,
			Score: round(float64(c.Score)), Dense: scored(c.Dense), Lexical: scored(c.Lexical),
		})
	}
	return all
}

// runnerUp returns the strongest answer other than the elected one, with all voters counting alike;
// empty: there is none.
func runnerUp(votes []outcome.Vote, elected string) string {
	for _, share := range ballot.Mean(Samples(votes), nil) {
		if share.Label != elected {
			return share.Label
		}
	}
	return ""
}

// Samples turns votes into one sample per voter. The votes of a voter stand together.
func Samples(votes []Vote) (samples []sdk.Sample) {
	for _, v := range votes {
		if n := len(samples); n == 0 || samples[n-1].Voter != v.Voter {
			samples = append(samples, sdk.Sample{Voter: v.Voter})
		}
		s := &samples[len(samples)-1]
		s.Answers = append(s.Answers, sdk.Answer{Label: v.Answer, Weight: v.Weight, Accepted: v.Accepted})
	}
	return samples
}

func scored(score float32) *float64 {
	if math.IsNaN(float64(score)) {
		return nil
	}
	v := round(float64(score))
	return &v
}

// round keeps six digits after the point: later ones depend on the order of addition.
func round(x float64) float64 { return math.Round(x*1e6) / 1e6 }
