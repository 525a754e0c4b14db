package outcome

import (
	"slices"
	"time"
	"unicode/utf8"

	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk"
)

// Totals sums up a run.
type Totals struct {
	Items, Answered, Failed, Flagged, Undecided int

	Earlier     int // of Items: taken from the journal
	Decided     int // of Answered: with a person's decision
	Left        int // read but left unanswered, because a stage is missing; not in Items
	Provisional int // of Items: answered without a voter that stopped, or whose service could not be asked
	FailedPaid  int // of Failed: a model was asked about them
	Unusable    int // of Failed: their rows cannot be used

	Usage   sdk.Usage
	Cost    float64 // of Usage
	Elapsed time.Duration
	Stages  []StageTime // in file order
	Skipped []Skipped   // stages with on_error = "skip", and voters whose service refused items
	Missing []Skipped   // stages that stopped or were unavailable, and voters that need them, with the provisional items
	Reasons []Reason    // why items are undecided, in order of appearance
	// Distributions lists the voters that return distributions: their labels are not counted as
	// answers.
	Distributions []string
	// Callers lists the voters that call services, which are compared with the other voters. Set it
	// before Add.
	Callers []string

	reasons map[string]int // indexes in Reasons
	voters  []*Dropped

	agreements []*Agreement
}

// Dropped counts the refused answers of a voter.
type Dropped struct {
	Voter   string // the block's name: "llm"
	Answers int    // all its answers
	Dropped int    // of Answers: not accepted
	Texts   []Text // the first refused texts that differ; at most maxTexts

	written   int          // of Answers: with a text, accepted or not
	positions map[Text]int // indexes in Texts, by text without its count
}

// Text is a refused answer.
type Text struct {
	Answer string
	Reason string // why Answer is empty
	Count  int    // occurrences
}

// Limits: a model may write a new text each time, of any length.
const (
	maxTexts = 256
	maxText  = 4096 // bytes of a text; a longer one is cut, and ends with an ellipsis
)

// Dropped returns the voters with more than 5 % of their answers refused, in file order.
func (t *Totals) Dropped() []Dropped {
	var all []Dropped
	for _, d := range t.voters {
		if 20*d.Dropped > d.Answers && !slices.Contains(t.Distributions, d.Voter) {
			all = append(all, *d)
		}
	}
	return all
}

// Wrote reports whether a voter answered any item.
func (t *Totals) Wrote(voter string) bool {
	return slices.ContainsFunc(t.voters, func(d *Dropped) bool { return d.Voter == voter && d.written > 0 })
}

// countDropped counts the answers of an item's voters. The votes of a voter must be adjacent.
func (t *Totals) countDropped(r Result) {
	var d *Dropped
	for i := range r.Votes {
		v := &r.Votes[i]
		if d == nil || d.Voter != v.Voter {
			d = t.voter(v.Voter)
		}
		d.add(v)
	}
}

func (t *Totals) voter(name string) *Dropped {
	for _, d := range t.voters {
		if d.Voter == name {
			return d
		}
	}
	d := &Dropped{Voter: name, positions: map[Text]int{}}
	t.voters = append(t.voters, d)
	return d
}

func (d *Dropped) add(v *result.Vote) {
	if v.Answer != "" {
		d.written++
	}
	if d.Answers++; v.Accepted {
		return
	}
	d.Dropped++
	text := Text{Answer: cut(v.Answer)}
	if v.Answer == "" {
		text.Reason = cut(v.Reason)
	}
	at, ok := d.positions[text]
	if !ok {
		if len(d.Texts) == maxTexts {
			return
		}
		at = len(d.Texts)
		d.positions[text], d.Texts = at, append(d.Texts, text)
	}
	d.Texts[at].Count++
}

// cut cuts a text to maxText.
func cut(text string) string { return cutTo(text, maxText) }

func cutTo(text string, at int) string {
	if len(text) <= at {
		return text
	}
	for !utf8.RuneStart(text[at]) {
		at--
	}
	return text[:at] + "…"
}

// StageTime is the work of one stage. Calls overlap: the sum over all stages can exceed the time of
// the run.
type StageTime struct {
	Stage string
	Rows  int
	Busy  time.Duration // sum over its calls
}

// Skipped counts the items answered without a stage.
type Skipped struct {
	Stage string // as "sample.llm"
	Items int
	Left  int   // of Missing: items without an answer
	First error // cause for the first such item of the input
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
	if len(t.Callers) > 0 {
		t.countAgreement(r.Votes)
	}
	switch {
	case r.Failure != nil:
		if t.Failed++; r.Usage != (sdk.Usage{}) {
			t.FailedPaid++
		}
		if r.Unusable() {
			t.Unusable++
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

// Took adds the times of another run, and its voters that return distributions. Add counts its
// results.
func (t *Totals) Took(run Totals) {
	t.Elapsed, t.Distributions = t.Elapsed+run.Elapsed, run.Distributions
	for _, s := range run.Stages {
		at := slices.IndexFunc(t.Stages, func(have StageTime) bool { return have.Stage == s.Stage })
		if at < 0 {
			t.Stages = append(t.Stages, s)
			continue
		}
		t.Stages[at].Rows, t.Stages[at].Busy = t.Stages[at].Rows+s.Rows, t.Stages[at].Busy+s.Busy
	}
}

// AddLeft counts an item left unanswered because a stage is missing.
func (t *Totals) AddLeft(f *Failure) {
	t.Left++
	Count(&t.Missing, f, 0)
	t.Missing[slices.IndexFunc(t.Missing, func(s Skipped) bool { return s.Stage == f.Stage })].Left++
}

// Count adds items that were answered without a stage.
func Count(all *[]Skipped, f *Failure, items int) {
	at := slices.IndexFunc(*all, func(s Skipped) bool { return s.Stage == f.Stage })
	if at < 0 {
		at = len(*all)
		*all = append(*all, Skipped{Stage: f.Stage, First: f.Err})
	}
	(*all)[at].Items += items
}
