package run

import (
	"fmt"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/sdk"
)

// Result is what became of one item.
type Result struct {
	Line       int // in the input
	ID, Text   string
	Expected   string        // the input's label, where it has one
	Gold       []source.Gold // what should be found for it; nil: that is not known
	Answer     string        // empty: no acceptable answer; Reason says why
	Agreement  float64
	Flagged    bool
	Reason     string
	Votes      []Vote
	Citations  []Citation      // what the answer cites; nil: it is no text that cites passages
	Candidates []sdk.Candidate // of the last retrieve or rerank stage
	Lists      []List          // with Options.Lists: of all of them, in file order; nil where an earlier part of the run answered the item
	// RetrievalOnly is set where the pipeline holds no election: the
	// candidates are its answer.
	RetrievalOnly bool
	// FreeText is set where the knowledge has no labels, so that answers are texts:
	// nobody writes one letter by letter as it is expected.
	FreeText bool
	Usage    sdk.Usage
	Usages   map[string]sdk.Usage // the same by voter; none of an earlier part of the run
	Failure  *Failure             // set: the item was not answered
	Skipped  []*Failure           // of stages that the item went on without; none of an earlier part of the run
	// Missing are the voters that are stopped, so that the answer is that of the
	// others alone: a later part of the run asks the item again. nil: none.
	Missing []*Failure
	Latency time.Duration // from being read to being answered; 0: an earlier part of the run answered it

	earlier bool     // an earlier part of the run answered it
	spread  []string // voters that handed in distributions; none of an earlier part of the run
	record  *record  // for Again; nil: not kept
	left    bool     // not answered because the run has to end: no failure of the item
}

// List are the candidates that one stage left to those below it.
type List struct {
	Stage      string // as "rerank.best"
	Candidates []sdk.Candidate
}

// Vote is one answer of one voter. A voter that hands in a distribution has
// one vote per label.
type Vote struct {
	Voter    string
	Answer   string
	Weight   float64
	Accepted bool
	Reason   string // why it is not accepted
}

// maxAnswers is how many votes of one voter results show. A statistical voter
// hands in a weight for every label; the tail says nothing.
const maxAnswers = 5

// Heaviest returns the votes with at most maxAnswers of a voter that handed in
// a distribution. A voter's answers stand heaviest first, so these are its
// first ones; the samples of a language model are all among them.
func Heaviest(votes []Vote) []Vote {
	kept := make([]Vote, 0, min(len(votes), 4*maxAnswers))
	voter, count := "", 0 // the votes of a voter stand together
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

// Failure says where and why an item failed.
type Failure struct {
	Stage string // as "sample.knn"; empty: the row itself was at fault
	Err   error
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

// Without names the voters that the answer is without.
func (r Result) Without() []string {
	var all []string
	for _, f := range r.Missing {
		all = append(all, f.Stage)
	}
	return all
}

// Totals sums up a run.
type Totals struct {
	Items, Answered, Failed, Flagged, Undecided int

	Earlier int // of Items: answered by an earlier part of the run
	Left    int // not among Items: read and left unanswered, because a stage had to stop
	// Provisional is how many of Items were answered without a voter that had to stop.
	Provisional int

	Usage   sdk.Usage
	Elapsed time.Duration
	Stages  []StageTime // in file order
	Skipped []Skipped   // stages that items went on without
	Missing []Skipped   // stages that had to stop, and the voters that need them, with the provisional items
	Reasons []Reason    // why items are undecided, as they first came up

	reasons map[string]int // places among Reasons
	voters  []*Dropped
}

func (t *Totals) add(r Result) {
	t.Items++
	t.Usage.Add(r.Usage)
	for _, f := range r.Skipped {
		count(&t.Skipped, f, 1)
	}
	for _, f := range r.Missing {
		count(&t.Missing, f, 1)
	}
	if len(r.Missing) > 0 {
		t.Provisional++
	}
	t.answers(r)
	switch {
	case r.Failure != nil:
		t.Failed++
		return
	case r.Answer == "" && !r.RetrievalOnly:
		t.Undecided++
		t.undecided(r)
	default:
		t.Answered++
	}
	if r.Flagged {
		t.Flagged++
	}
}

// StageTime is the work of one stage. Calls overlap: the sum over all stages
// can exceed the time of the run.
type StageTime struct {
	Stage string
	Rows  int
	Busy  time.Duration // sum over its calls
}
