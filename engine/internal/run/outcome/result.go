package outcome

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk"
)

// Result is the outcome of one item.
type Result struct {
	Line     int    // in the input; for a glob, counted through all its files
	File     string // file of the glob that has the row; empty: the input is one file
	FileLine int    // in File
	ID, Text string
	Expected string        // label in the input, if it has one
	Gold     []source.Gold // passages that should be found; nil: unknown
	// Fields are the input's other columns, in its order, if the run reads them.
	Fields []result.Field
	Answer string // empty: no acceptable answer; Reason says why
	result.Verdict
	Form       sdk.LabelForm // of Expected and Answer
	Votes      []result.Vote
	Citations  []Citation      // passages that the answer cites; nil: it is not a text with citations
	Candidates []sdk.Candidate // left by the last retrieve or rerank stage
	Lists      []List          // of every retrieve and rerank stage, in file order; with texts if the run keeps them
	Prompts    []Prompted      // by prompt stages that wrote any, in file order
	Requests   []Request       // of voters that ask services, in sample order
	// RetrievalOnly is set if the pipeline has no election: the candidates are its answer.
	RetrievalOnly bool
	// FreeText is set if the knowledge has no labels: answers are then free texts, which cannot be
	// compared letter by letter.
	FreeText bool
	Usage    sdk.Usage
	Usages   map[string]sdk.Usage // Usage by voter
	Cost     float64              // of Usage, by the prices in the file
	Costs    map[string]float64   // Cost by voter, for voters with a price
	Failure  *Failure             // set: the item failed
	Skipped  []*Failure           // of skipped stages (on_error = "skip"), and of voters whose service refuses the item
	// Missing lists the stopped voters, without which the answer was elected. A resumed run asks
	// about the item again. nil: none.
	Missing []*Failure
	Latency time.Duration // from reading the item to its answer, on the machine that answered
	Rules   []Rule        // that decided something, in file order
	Retries []Retry       // of stages called again about the item
	// Collected identifies results that came later for the item (retry.PendingWork).
	Collected []string
	// A run with a spending limit (package spend) sets one of these bills for an item that paid
	// voters may be asked about. Unasked is a forecast: the answer comes from the free voters, and
	// stays unless the item's turn comes. Asked is the actual bill.
	Unasked, Asked *Bill
}

// Reason counts the items without an answer for the same cause.
type Reason struct {
	Text    string
	Items   int
	Example string // an answer refused for this reason; empty: none
}

// maxReasons limits the reasons counted, because plugins may put a model's output into them.
const maxReasons = 1000

// countReasons counts an item without an answer under each distinct reason of its votes or, if no
// vote has a reason, under the election's reason.
func (t *Totals) countReasons(r Result) {
	var seen []string
	note := func(text, example string) {
		if text == "" || slices.Contains(seen, text) {
			return
		}
		seen = append(seen, text)
		at, ok := t.reasons[text]
		if !ok {
			if len(t.Reasons) == maxReasons {
				return
			}
			if t.reasons == nil {
				t.reasons = map[string]int{}
			}
			at = len(t.Reasons)
			t.reasons[text] = at
			t.Reasons = append(t.Reasons, Reason{Text: text, Example: example})
		}
		t.Reasons[at].Items++
	}
	for i := range r.Votes {
		if v := &r.Votes[i]; !v.Accepted {
			note(v.Reason, v.Answer)
		}
	}
	if len(seen) == 0 {
		note(r.Reason, "")
	}
}

// Right reports whether the answer is the expected label or set or, in a tree, a node above the
// expected label. It is meaningless without an expected label.
func (r *Result) Right() bool { return r.Form.Holds(r.Answer, r.Expected) }

// Bill has the calls and the cost of asking the paid voters about one item.
type Bill struct {
	Calls int     `json:"calls"`          // requests; if unasked, with all resamples
	Cost  float64 `json:"cost,omitempty"` // by the prices in the file; if unasked, the likely cost
	// For an unasked item: the highest possible cost, if a bound is known, and the expected gain
	// (package spend).
	Most      float64 `json:"most,omitempty"`
	Unbounded bool    `json:"unbounded,omitempty"`
	Gain      float64 `json:"gain,omitempty"`
}

// In a resumed run, a result from the journal has no Lists, Prompts, Requests, Usages, Costs,
// Skipped, Latency, Rules and Retries.

// Prompted holds the prompts that one prompt stage wrote.
type Prompted struct {
	Stage   string // as "prompt.classify"
	Prompts []sdk.Prompt
	// Hashes are journal.Hash of prompts that another machine wrote and kept. Prompts is then nil.
	Hashes []string
}

// Request identifies the service's reply behind a sample.
type Request struct {
	Voter string
	Key   sdk.Key // sdk.Sample.Key
}

// List holds the candidates that one stage passes to the stages below it.
type List struct {
	Stage      string // as "rerank.best"
	Candidates []sdk.Candidate
	Whole      bool // all entries of the knowledge, unscored
}

// maxAnswers limits the votes of one distribution that results show. A statistical voter gives
// every label a weight; the smallest weights are of no interest.
const maxAnswers = 5

// Place returns the item's place in the input, for people.
func (r Result) Place() string {
	if r.File != "" {
		return fmt.Sprintf("%s:%d", r.File, r.FileLine)
	}
	return fmt.Sprintf("line %d", r.Line)
}

// Heaviest returns at most maxAnswers votes of each distribution, and all samples of a language
// model. The votes of a voter must be adjacent, the heaviest first.
func Heaviest(votes []result.Vote) []result.Vote {
	kept := make([]result.Vote, 0, min(len(votes), 4*maxAnswers))
	voter, count := "", 0
	for i := range votes {
		v := &votes[i]
		if v.Voter != voter {
			voter, count = v.Voter, 0
		}
		if v.Weight < 1 {
			if count++; count > maxAnswers {
				continue
			}
		}
		kept = append(kept, *v)
	}
	return kept
}

// Citation is a passage that an answer cites.
type Citation struct {
	Number int // in the prompt, and so in the answer
	// Passage is the candidate that the prompt showed. In a result from the journal it has only the
	// id and the Origins.
	Passage sdk.Candidate
}

// Origins are the metadata keys that describe where a passage comes from, in display order.
var Origins = []string{"path", "title", "headings", "first_line", "last_line", "first_page", "last_page"}

// Failure is the stage at which an item failed, and the cause.
type Failure struct {
	Stage string // as "sample.knn"; empty: the row itself is unusable
	Err   error
}

// Unusable reports whether the item's row cannot be used, so that another try would not help.
func (r *Result) Unusable() bool {
	return r.Failure != nil && errors.As(r.Failure.Err, new(*source.RowError))
}

func (f *Failure) Error() string {
	if f.Stage == "" {
		return f.Err.Error()
	}
	if text := f.Err.Error(); strings.HasPrefix(text, f.Stage+": ") { // the stage's process already names the stage
		return text
	}
	return fmt.Sprintf("%s: %v", f.Stage, f.Err)
}

// Without returns the names of the voters missing from the answer.
func (r Result) Without() []string {
	var all []string
	for _, f := range r.Missing {
		all = append(all, f.Stage)
	}
	return all
}

// Rule is a rule of the file that decided something about an item.
type Rule struct {
	Stage string `json:"stage"` // as "sample.llm", or "sample.llm, fallback.other"
	Rule  string `json:"rule"`  // one of the names below
	// N of Of candidates were dropped, or N of Of answers refused.
	N  int `json:"n,omitempty"`
	Of int `json:"of,omitempty"`
	// Name is the fallback that took over. Why is the cause of the fallback, or of skipping a
	// stage.
	Name string `json:"name,omitempty"`
	Why  string `json:"why,omitempty"`
}

// Rules that decide about items, named after the arguments and blocks of the file.
const (
	RuleWhen     = "when"     // the rule does not hold: the stage was not asked
	RuleKeep     = "keep"     // the rule dropped candidates
	RuleAccept   = "accept"   // the rule refused answers
	RuleFlag     = "flag"     // the rule holds: a person should look at the item
	RuleFallback = "fallback" // the rule holds: the fallback took over
	RuleOnError  = "on_error" // the stage failed, and the item continued without it
)

// Retry counts the repeated calls of one stage about an item.
type Retry struct {
	Stage string `json:"stage"` // as in Rule
	Why   string `json:"why"`   // the cause
	Times int    `json:"times"`
}

// maxWhy limits the bytes of a cause that a result keeps.
const maxWhy = 300

// Why returns an error's text, cut to maxWhy since every item keeps it.
func Why(err error) string { return cutTo(err.Error(), maxWhy) }
