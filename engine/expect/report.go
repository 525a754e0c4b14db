package expect

import (
	"slices"

	"github.com/racflow/racflow/engine/interval"
)

// Report is what became of the expectations of a pipeline.
type Report struct {
	File     string    `json:"file"`
	Pipeline string    `json:"pipeline"`
	Verdicts []Verdict `json:"expects"` // in file order
	Baseline *Baseline `json:"baseline,omitempty"`
	// Incomplete says that items or rows failed in what was measured.
	Incomplete bool `json:"incomplete"`
}

// Holds reports whether all that was tested holds, and the pipeline is not worse than its
// baseline.
func (r *Report) Holds() bool {
	return r.Count(Fails) == 0 && (r.Baseline == nil || !r.Baseline.Worse)
}

// Count is how many expectations have come to an outcome.
func (r *Report) Count(o Outcome) (n int) {
	for _, v := range r.Verdicts {
		if v.Outcome == o {
			n++
		}
	}
	return n
}

// Outcome is what an expectation comes to.
type Outcome string

// The outcomes.
const (
	Holds   Outcome = "holds"
	Fails   Outcome = "fails"
	Skipped Outcome = "skipped" // it is not enabled
)

// Verdict is what became of one expectation.
type Verdict struct {
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	Rule        string            `json:"rule"`
	Line        int               `json:"line"`
	Input       string            `json:"input,omitempty"` // that it was measured on; empty: on none
	Items       int               `json:"items,omitempty"` // of Input
	Variables   map[string]string `json:"variables,omitempty"`
	Outcome     Outcome           `json:"outcome"`
	Figures     []Figure          `json:"figures,omitempty"`
	Reason      string            `json:"reason,omitempty"` // why the rule could not be asked
}

// Needs is what would be needed for the rule to hold, as far as that follows from it.
func (v *Verdict) Needs() (all []string) {
	for _, f := range v.Figures {
		all = slices.Concat(all, f.Needs)
	}
	return all
}

// Figure is something that was measured.
type Figure struct {
	Figure   string             `json:"figure"` // as the rule writes it
	Value    any                `json:"value"`  // a number, a text or a bool; nil: see Error
	Interval *interval.Interval `json:"interval,omitempty"`
	// A share is Count of Of items; Of is 0 where the figure is none.
	Count int      `json:"count,omitempty"`
	Of    int      `json:"of,omitempty"`
	Note  string   `json:"note,omitempty"`  // what there is to say beside the value
	Needs []string `json:"needs,omitempty"` // what would be needed for the rule to hold
	Error string   `json:"error,omitempty"` // why it could not be measured
}

// Baseline is how the answers differ from those of an earlier run.
type Baseline struct {
	Run string `json:"run"`
	// Paired are the items that are compared: Lost are those that the run had right and the
	// pipeline has wrong.
	Paired interval.Paired `json:"paired"`
	Worse  bool            `json:"worse"` // by more than chance explains
	// Left out: items that the run does not have or had not answered for good, or people had decided,
	// and those whose label has changed since.
	Missing    int      `json:"missing,omitempty"`
	Relabelled int      `json:"relabelled,omitempty"`
	Lost       []string `json:"lost,omitempty"` // ids, of the first maxLost
}

// Chance is above which a difference from the baseline may be one.
const Chance = 1 - interval.Level
