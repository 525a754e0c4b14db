package journal

import (
	"time"

	"github.com/racflow/racflow/engine/outcome"
)

// Totals are how a run ended.
type Totals struct {
	Ended time.Time `json:"ended"`
	// Complete says that the input was worked through to its end, or to the
	// limit that was set.
	Complete bool   `json:"complete"`
	Reason   string `json:"reason,omitempty"` // why it is not complete, or answers are provisional

	Items     int `json:"items"`   // that the output holds
	Earlier   int `json:"earlier"` // of them: answered by an earlier part of the run
	Answered  int `json:"answered"`
	Undecided int `json:"undecided"`
	Taken     int `json:"taken,omitempty"`   // from another run
	Decided   int `json:"decided,omitempty"` // by people
	Flagged   int `json:"flagged"`
	Failed    int `json:"failed"`
	Left      int `json:"left"` // read and left unanswered
	// Provisional is how many were answered without a voter that had to stop.
	Provisional int `json:"provisional,omitempty"`
	// FailedPaid is how many of those that failed a model had been asked about.
	FailedPaid int `json:"failed_paid,omitempty"`

	InputTokens  uint64  `json:"input_tokens"` // of the answers, whenever they were made
	CachedTokens uint64  `json:"cached_tokens"`
	OutputTokens uint64  `json:"output_tokens"`
	Cost         float64 `json:"cost,omitempty"` // of them, by the prices in the file

	Seconds float64     `json:"seconds"`
	Stages  []StageTime `json:"stages"`
}

// Unfinished reports whether the run owes answers: it was cut off (there are no
// totals), it ended before its input, items were left, or answers are provisional.
// Items that failed are tried again by a resumed run, too; they may fail for good.
func (t *Totals) Unfinished() bool {
	return t == nil || !t.Complete || t.Left > 0 || t.Provisional > 0
}

// Owes reports whether resuming the run may give what was paid for: it is unfinished, or items
// failed that models were asked about.
func (t *Totals) Owes() bool { return t.Unfinished() || t.FailedPaid > 0 }

// StageTime is the work of one stage.
type StageTime struct {
	Stage string  `json:"stage"`
	Rows  int     `json:"rows"`
	Busy  float64 `json:"busy_seconds"` // of its calls, which overlap
}

// NewTotals sums up a run. A nil err means that it is complete.
func NewTotals(t outcome.Totals, err error) *Totals {
	end := &Totals{
		Ended: now(), Complete: err == nil,
		Items: t.Items, Earlier: t.Earlier, Answered: t.Answered, Undecided: t.Undecided, Decided: t.Decided, Taken: t.Taken, Flagged: t.Flagged, Failed: t.Failed, Left: t.Left, Provisional: t.Provisional, FailedPaid: t.FailedPaid,
		InputTokens: t.Usage.InputTokens, CachedTokens: t.Usage.CachedTokens, OutputTokens: t.Usage.OutputTokens, Cost: t.Cost,
		Seconds: t.Elapsed.Seconds(),
	}
	switch {
	case err != nil:
		end.Reason = err.Error()
	case len(t.Missing) > 0:
		end.Reason = t.Missing[0].First.Error()
	}
	for _, s := range t.Stages {
		end.Stages = append(end.Stages, StageTime{s.Stage, s.Rows, s.Busy.Seconds()})
	}
	return end
}

// now is a time as files of a run keep it.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }
