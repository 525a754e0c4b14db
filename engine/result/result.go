package result

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/racflow/racflow/sdk"
)

// Result is the result of one item. New fields may come at any time.
type Result struct {
	ID       string `json:"id"`
	Text     string `json:"text"`
	Expected string `json:"expected,omitempty"` // the input's label, if any
	Answer   Answer `json:"answer"`
	Verdict
	Missing    []string    `json:"missing,omitempty"` // voters that had to stop, so that the others gave the answer
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

// Answer is an elected answer. Empty, and null in JSON, means that no answer is acceptable. If labels
// are sets, sdk.NoLabels is the answer that the text has none.
type Answer string

// MarshalJSON implements json.Marshaler. The calling encoder decides whether to escape HTML.
func (a Answer) MarshalJSON() ([]byte, error) {
	if a == "" {
		return []byte("null"), nil
	}
	return encode(string(a))
}

// Verdict holds what is known about an answer. Results, journals and pages embed it, so a new field
// here appears in all of them.
type Verdict struct {
	Agreement float64 `json:"agreement"` // share of the votes, from 0 to 1
	// Confidence is the probability that the answer is right, from 0 to 1; 0: the election does not
	// estimate it.
	Confidence float64 `json:"confidence,omitempty"`
	// Unknown is the probability that no label of the knowledge fits; 0: the election does not
	// estimate it.
	Unknown float64 `json:"unknown,omitempty"`
	// Labels are the labels of an answer that is a set, the surest first. For labels with levels, they
	// are the levels of the tree down to the likeliest label, even below the answer. If the election
	// was asked for likely labels, these follow. nil: the election does not estimate them.
	Labels []sdk.LabelConfidence `json:"labels,omitempty"`
	// RunnerUp is the second-best label if all voters count alike. Empty: nobody voted for another
	// label, or answers are sets or no labels.
	RunnerUp string    `json:"runner_up,omitempty"`
	Flagged  bool      `json:"flagged"`
	Reason   string    `json:"reason,omitempty"`  // why there is no answer, or who decided it
	Decided  *Decision `json:"decided,omitempty"` // set if a person decided the answer; nil: the stages answered
}

// Decision records that a person decided an answer: no stage was asked.
type Decision struct {
	By string    `json:"by,omitempty"` // empty: not known
	At time.Time `json:"at,omitzero"`
}

// String returns a sentence such as "decided by Ada on 2026-11-23".
func (d *Decision) String() string {
	text := "decided by " + cmp.Or(d.By, "a person")
	if !d.At.IsZero() {
		text += " on " + d.At.UTC().Format(time.DateOnly)
	}
	return text
}

// Vote is one answer of one voter. A voter that returns a distribution has one vote
// per label.
type Vote struct {
	Voter    string  `json:"voter"`
	Answer   string  `json:"answer"`
	Weight   float64 `json:"weight"`
	Accepted bool    `json:"accepted"`
	Reason   string  `json:"reason,omitempty"` // why it is not accepted
	// Of a language model: how the answer was read, unless letter by letter; the model's own
	// explanation; and the model's name, if the voter has several.
	Reading     string `json:"reading,omitempty"`
	Explanation string `json:"explanation,omitempty"`
	Model       string `json:"model,omitempty"`
}

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
