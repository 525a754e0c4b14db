package journal

import (
	"time"

	"github.com/racflow/racflow/engine/run"
)

// Totals are how a run ended.
type Totals struct {
	Ended time.Time `json:"ended"`
	// Complete says that the input was worked through to its end, or to the
	// limit that was set.
	Complete bool   `json:"complete"`
	Reason   string `json:"reason,omitempty"` // why it is not complete

	Items     int `json:"items"`   // that the output holds
	Earlier   int `json:"earlier"` // of them: answered by an earlier part of the run
	Answered  int `json:"answered"`
	Undecided int `json:"undecided"`
	Flagged   int `json:"flagged"`
	Failed    int `json:"failed"`
	Left      int `json:"left"` // read and left unanswered

	InputTokens  uint64 `json:"input_tokens"` // of the answers, whenever they were made
	CachedTokens uint64 `json:"cached_tokens"`
	OutputTokens uint64 `json:"output_tokens"`

	Seconds float64     `json:"seconds"`
	Stages  []StageTime `json:"stages"`
}

// Unfinished reports whether resuming the run would do anything: it was cut off
// (there are no totals), it ended before its input, or items failed or were left.
func (t *Totals) Unfinished() bool {
	return t == nil || !t.Complete || t.Failed > 0 || t.Left > 0
}

// StageTime is the work of one stage.
type StageTime struct {
	Stage string  `json:"stage"`
	Rows  int     `json:"rows"`
	Busy  float64 `json:"busy_seconds"` // of its calls, which overlap
}

// NewTotals sums up a run. A nil err means that it is complete.
func NewTotals(t run.Totals, err error) *Totals {
	end := &Totals{
		Ended: now(), Complete: err == nil,
		Items: t.Items, Earlier: t.Earlier, Answered: t.Answered, Undecided: t.Undecided, Flagged: t.Flagged, Failed: t.Failed, Left: t.Left,
		InputTokens: t.Usage.InputTokens, CachedTokens: t.Usage.CachedTokens, OutputTokens: t.Usage.OutputTokens,
		Seconds: t.Elapsed.Seconds(),
	}
	if err != nil {
		end.Reason = err.Error()
	}
	for _, s := range t.Stages {
		end.Stages = append(end.Stages, StageTime{s.Stage, s.Rows, s.Busy.Seconds()})
	}
	return end
}

// now is a time as files of a run keep it.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }
