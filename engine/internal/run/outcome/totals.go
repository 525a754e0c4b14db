package outcome

import (
	"slices"
	"time"
	"unicode/utf8"

	"github.com/racflow/racflow/sdk"
)

// Dropped are the answers of a voter that do not count.
type Dropped struct {
	Voter   string // the block's name: "llm"
	Answers int    // that it gave
	Dropped int    // of them: not accepted
	Texts   []Text // that were dropped, the frequent ones among them; at most maxTexts

	positions map[Text]int // in Texts, by what it is without its count
}

// Text is an answer that was dropped.
type Text struct {
	Answer string
	Reason string // why there is no answer, where it is empty
	Count  int    // how often it came; where there are too many texts to count all, at least so often

	missed int // how often it may have come before it was counted
}

// A model may write something else each time, and at any length.
const (
	maxTexts = 256
	maxText  = 4096 // bytes of one; a longer one is cut, and ends with an ellipsis
)

// Dropped returns the voters of whose answers more than 5 % do not count, in file
// order.
func (t *Totals) Dropped() []Dropped {
	var all []Dropped
	for _, d := range t.voters {
		if 20*d.Dropped > d.Answers && !slices.Contains(t.Distributions, d.Voter) {
			all = append(all, *d)
		}
	}
	return all
}

// countDropped counts the answers of an item's voters, whose votes stand together.
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

func (d *Dropped) add(v *Vote) {
	if d.Answers++; v.Accepted {
		return
	}
	d.Dropped++
	text := Text{Answer: cut(v.Answer)}
	if v.Answer == "" {
		text.Reason = cut(v.Reason)
	}
	at, ok := d.positions[text]
	switch {
	case ok:
	case len(d.Texts) < maxTexts:
		at = len(d.Texts)
		d.Texts = append(d.Texts, text)
	default:
		at = d.rarest()
		rare := d.Texts[at]
		text.missed = rare.Count + rare.missed
		delete(d.positions, Text{Answer: rare.Answer, Reason: rare.Reason})
		d.Texts[at] = text
		text.missed = 0
	}
	d.positions[text] = at
	d.Texts[at].Count++
}

// rarest is the text that gives way to a new one: the Space-Saving algorithm, by which every
// text that is more frequent than one in maxTexts is counted (Metwally, Agrawal, El Abbadi,
// "Efficient Computation of Frequent and Top-k Elements in Data Streams", ICDT 2005).
func (d *Dropped) rarest() int {
	at := 0
	for i := range d.Texts {
		if d.Texts[i].Count+d.Texts[i].missed < d.Texts[at].Count+d.Texts[at].missed {
			at = i
		}
	}
	return at
}

// cut bounds a text.
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
