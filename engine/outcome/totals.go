package outcome

import (
	"slices"
	"time"

	"github.com/racflow/racflow/sdk"
)

// Totals sums up a run.
type Totals struct {
	Items, Answered, Failed, Flagged, Undecided int

	Earlier     int // of Items: taken from the journal
	Taken       int // of Items: their answers are those of another run
	Decided     int // of Answered: people have decided about their texts
	Left        int // not among Items: read and left unanswered, because a stage is missing
	Provisional int // of Items: answered without a voter that had to stop, or whose service could not be asked
	FailedPaid  int // of Failed: a model had been asked about them

	Usage   sdk.Usage
	Cost    float64 // of it
	Elapsed time.Duration
	Stages  []StageTime // in file order
	Skipped []Skipped   // stages with on_error = "skip", and voters whose service refused items
	Missing []Skipped   // stages that had to stop or could not be asked, and the voters that need them, with the provisional items
	Reasons []Reason    // why items are undecided, as they first came up
	// Distributions names the voters that return distributions, whose labels are no
	// answers.
	Distributions []string

	reasons map[string]int // positions in Reasons
	voters  []*Dropped
}

// StageTime is the work of one stage. Calls overlap: the sum over all stages can
// exceed the time of the run.
type StageTime struct {
	Stage string
	Rows  int
	Busy  time.Duration // sum over its calls
}

// Skipped is a stage that items were answered without.
type Skipped struct {
	Stage string // as "sample.llm"
	Items int
	Left  int   // of Missing: items without an answer
	First error // why the first of the input was
}

// Add counts a result.
func (t *Totals) Add(r Result) {
	t.Items++
	t.Usage.Add(r.Usage)
	t.Cost += r.Cost
	for _, f := range r.Skipped {
		Count(&t.Skipped, f, 1)
	}
	for _, f := range r.Missing {
		Count(&t.Missing, f, 1)
	}
	if len(r.Missing) > 0 {
		t.Provisional++
	}
	t.countDropped(r)
	switch {
	case r.Failure != nil:
		if t.Failed++; r.Usage != (sdk.Usage{}) {
			t.FailedPaid++
		}
		return
	case r.Answer == "" && !r.RetrievalOnly:
		t.Undecided++
		t.countReasons(r)
	default:
		t.Answered++
	}
	if r.Decided != nil {
		t.Decided++
	}
	if r.Flagged {
		t.Flagged++
	}
}

// AddLeft counts an item that is left unanswered for want of a stage.
func (t *Totals) AddLeft(f *Failure) {
	t.Left++
	Count(&t.Missing, f, 0)
	t.Missing[slices.IndexFunc(t.Missing, func(s Skipped) bool { return s.Stage == f.Stage })].Left++
}

// Count counts items that were answered without a stage.
func Count(all *[]Skipped, f *Failure, items int) {
	at := slices.IndexFunc(*all, func(s Skipped) bool { return s.Stage == f.Stage })
	if at < 0 {
		at = len(*all)
		*all = append(*all, Skipped{Stage: f.Stage, First: f.Err})
	}
	(*all)[at].Items += items
}
