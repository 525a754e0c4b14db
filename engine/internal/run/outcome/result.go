package outcome

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/sdk"
)

// Reason is why items are without an answer.
type Reason struct {
	Text    string
	Items   int
	Example string // an answer that was not accepted for it; empty: there is none
}

// maxReasons bounds how many reasons are counted: plugins may write what a model said
// into them.
const maxReasons = 1000

// countReasons counts the reasons of an item without an answer, each once: those of
// its votes, and where none of these has one, the election's.
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

// Rest are votes of a distribution that a result is without: nobody reads more of them than how
// many they are.
type Rest struct {
	Voter           string
	Votes, Accepted int
}

// Shorten returns votes without those that make no difference to a run: of a distribution with
// many labels, all but the heaviest ones (Heaviest), the heaviest accepted one, and one for each
// reason why some are not accepted. The rest is counted.
func Shorten(votes []Vote) (kept []Vote, rest []Rest) {
	var before []string // voters
	for from := 0; from < len(votes); {
		to := from + 1
		for to < len(votes) && votes[to].Voter == votes[from].Voter {
			to++
		}
		group := votes[from:to]
		again := slices.Contains(before, group[0].Voter) || slices.ContainsFunc(votes[to:], func(v Vote) bool { return v.Voter == group[0].Voter })
		before, from = append(before, group[0].Voter), to
		if len(group) <= maxAnswers+1 || again || !distribution(group) {
			kept = append(kept, group...)
			continue
		}
		less, accepted, reasons := Rest{Voter: group[0].Voter}, false, map[string]bool{"": true}
		for i, v := range group {
			switch {
			case i <= maxAnswers, v.Accepted && !accepted, !v.Accepted && !reasons[v.Reason]:
				kept = append(kept, v)
			default:
				if less.Votes++; v.Accepted {
					less.Accepted++
				}
			}
			if accepted = accepted || v.Accepted; !v.Accepted {
				reasons[v.Reason] = true
			}
		}
		if less.Votes > 0 {
			rest = append(rest, less)
		}
	}
	return kept, rest
}

// distribution reports whether the votes of a voter are one: a share for each label, the
// heaviest first. The first may be all.
func distribution(votes []Vote) bool {
	labels := make(map[string]bool, len(votes))
	for i := range votes {
		v := &votes[i]
		if !(v.Weight <= 1) || i > 0 && !(v.Weight < 1 && v.Weight <= votes[i-1].Weight) || labels[v.Answer] { // a weight may be no number
			return false
		}
		labels[v.Answer] = true
	}
	return true
}

// Result is what became of one item.
type Result struct {
	Line     int    // in the input; in a glob, lines are counted through all files
	File     string // of a glob, in which the row stands; empty: the input is one file
	FileLine int    // in File
	ID, Text string
	Expected string        // the input's label, where it has one
	Gold     []source.Gold // what should be found for it; nil: not known
	// Fields are the input's other columns, in its order, where the run reads them.
	Fields     []source.Field
	Answer     string  // empty: no acceptable answer; Reason says why
	Agreement  float64 // from 0 to 1
	Confidence float64 // from 0 to 1; 0: the election does not estimate it
	Flagged    bool
	Reason     string    // why there is no answer, or who decided it
	Decided    *Decision // by whom and when, where a person has decided about the text; nil: the stages have answered
	Votes      []Vote
	Rest       []Rest          // votes that it is without, of a result that another machine has made
	Citations  []Citation      // what the answer cites; nil: it is no text that cites passages
	Candidates []sdk.Candidate // of the last retrieve or rerank stage
	Lists      []List          // of all of them in file order; with texts where the run keeps these
	Prompts    []Prompted      // of the prompt stages that wrote any, in file order
	Requests   []Request       // of voters that ask services, in the order of their samples
	// Basis is what of the knowledge the stages below its searches have seen, where the run keeps
	// that; From is the run that gave the answer; empty: this one.
	Basis Basis
	From  string
	// RetrievalOnly is set where the pipeline has no election: the candidates are its
	// answer.
	RetrievalOnly bool
	// FreeText is set where the knowledge has no labels, so that answers are texts:
	// nobody writes one letter by letter as it is expected.
	FreeText bool
	Usage    sdk.Usage
	Usages   map[string]sdk.Usage // the same by voter
	Cost     float64              // of it, by the prices in the file
	Costs    map[string]float64   // the same by voter, of those that have a price
	Failure  *Failure             // set: the item was not answered
	Skipped  []*Failure           // of stages with on_error = "skip", and of voters whose service refuses the item
	// Missing are the voters that had to stop, so that the answer is that of the others
	// alone: a resumed run asks the item again. nil: none.
	Missing []*Failure
	Latency time.Duration // from being read to being answered; of an item that another machine has answered, there
	Rules   []Rule        // that decided something, in file order
	Retries []Retry       // of stages that were called again about the item
	// Where a run may spend only so much (package spend), one of these is set for an item that
	// a voter is to be paid for: Unasked is what asking would take, and the answer is that of
	// the free voters, which is all that there is unless the item's turn comes; Asked is
	// what asking has taken.
	Unasked, Asked *Bill
}

// Basis is what an item got from the knowledge: two runs of the same stages answer it alike
// where it is equal, the labels of the knowledge and what stages have learnt are the same.
type Basis struct {
	Found string            `json:"found,omitempty"` // digest of what the searches found; empty: it is not known
	Drawn map[string]string `json:"drawn,omitempty"` // digests of the random examples of stages, as "prompt.shots"
}

// Decision says that a person has decided an answer (package reviewed): no stage was asked.
type Decision struct {
	By string    `json:"by,omitempty"` // empty: not known
	At time.Time `json:"at,omitzero"`
}

// String says it in a sentence, as "decided by Ada on 2026-11-23".
func (d *Decision) String() string {
	text := "decided by " + cmp.Or(d.By, "a person")
	if !d.At.IsZero() {
		text += " on " + d.At.UTC().Format(time.DateOnly)
	}
	return text
}

// Bill is what it takes to ask about an item those voters that call services.
type Bill struct {
	Calls int     `json:"calls"`          // requests; of an unasked item, with all resamples
	Cost  float64 `json:"cost,omitempty"` // by the prices in the file; of an unasked item, what is likely
	// Of an unasked item: what it costs at most, unless nobody knows a bound, and what is
	// expected of asking (package spend).
	Most      float64 `json:"most,omitempty"`
	Unbounded bool    `json:"unbounded,omitempty"`
	Gain      float64 `json:"gain,omitempty"`
}

// A result that a resumed run takes from its journal has no Lists, Prompts, Requests, Usages,
// Costs, Skipped, Latency, Rules and Retries.

// Prompted is what one prompt stage wrote.
type Prompted struct {
	Stage   string // as "prompt.classify"
	Prompts []sdk.Prompt
	// Hashes are journal.Hash of prompts that another machine has written and kept. Prompts is nil
	// then.
	Hashes []string
}

// Request is where the reply behind a sample is.
type Request struct {
	Voter string
	Key   sdk.Key // sdk.Sample.Key
}

// List are the candidates that one stage left to those below it.
type List struct {
	Stage      string // as "rerank.best"
	Candidates []sdk.Candidate
	Whole      bool // they are all of the knowledge, which nothing has scored
}

// Vote is one answer of one voter. A voter that returns a distribution has one vote
// per label.
type Vote struct {
	Voter    string  `json:"voter"`
	Answer   string  `json:"answer"`
	Weight   float64 `json:"weight"`
	Accepted bool    `json:"accepted"`
	Reason   string  `json:"reason,omitempty"` // why it is not accepted
	// Of a language model: how the answer was read, where that is not letter by letter; why it
	// is the answer, in the model's words; and which model gave it, where the voter has several.
	Reading     string `json:"reading,omitempty"`
	Explanation string `json:"explanation,omitempty"`
	Model       string `json:"model,omitempty"`
}

// maxAnswers is how many votes of one distribution results show. A statistical voter
// returns a weight for every label; the tail says nothing.
const maxAnswers = 5

// Place says where the item stands in the input, for people.
func (r Result) Place() string {
	if r.File != "" {
		return fmt.Sprintf("%s:%d", r.File, r.FileLine)
	}
	return fmt.Sprintf("line %d", r.Line)
}

// Heaviest returns the votes with at most maxAnswers of each distribution. A voter's
// votes stand together, heaviest first, so these are its first ones; the samples of a
// language model are all among them.
func Heaviest(votes []Vote) []Vote {
	kept := make([]Vote, 0, min(len(votes), 4*maxAnswers))
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
	// Passage is the candidate that the prompt showed. A result from the journal has
	// its id, and of its metadata the Origins.
	Passage sdk.Candidate
}

// Origins are the metadata that say where a passage is from, in the order in which
// they are shown.
var Origins = []string{"path", "title", "headings", "first_line", "last_line", "first_page", "last_page"}

// Failure says where and why an item failed.
type Failure struct {
	Stage string // as "sample.knn"; empty: the row itself cannot be used
	Err   error
}

// FailureOf is the failure that an error is about; of no stage where it is none.
func FailureOf(err error) *Failure {
	f := new(Failure)
	if !errors.As(err, &f) {
		f = &Failure{Err: err}
	}
	return f
}

func (f *Failure) Error() string {
	if f.Stage == "" {
		return f.Err.Error()
	}
	if text := f.Err.Error(); strings.HasPrefix(text, f.Stage+": ") { // its process names it, too
		return text
	}
	return fmt.Sprintf("%s: %v", f.Stage, f.Err)
}

// Unpaid is the result without what it took, which another run has paid.
func (r Result) Unpaid() Result {
	r.Usage, r.Usages, r.Cost, r.Costs, r.Latency = sdk.Usage{}, nil, 0, nil, 0
	return r
}

// Without names the voters that the answer is without.
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
	// N of Of candidates were dropped, or answers refused.
	N  int `json:"n,omitempty"`
	Of int `json:"of,omitempty"`
	// Name is the fallback that took over; Why is what it took over for, or why a stage that
	// may be skipped was.
	Name string `json:"name,omitempty"`
	Why  string `json:"why,omitempty"`
}

// Rules that decide about items, by the arguments and blocks of the file.
const (
	RuleWhen     = "when"     // it does not hold: the stage was not asked
	RuleKeep     = "keep"     // it dropped candidates
	RuleAccept   = "accept"   // it refused answers
	RuleFlag     = "flag"     // it holds: a person should look at the item
	RuleFallback = "fallback" // it holds: the fallback took over
	RuleOnError  = "on_error" // the stage failed, and the item went on without it
)

// Retry is a stage that was called again about an item.
type Retry struct {
	Stage string `json:"stage"` // as in Rule
	Why   string `json:"why"`   // it had to be
	Times int    `json:"times"`
}

// maxWhy is how many bytes of a cause are kept.
const maxWhy = 300

// Why is what an error says, cut to what is worth keeping of every item.
func Why(err error) string { return cutTo(err.Error(), maxWhy) }
