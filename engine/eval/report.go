package eval

import (
	"cmp"
	"slices"

	"github.com/racflow/racflow/engine/dropped"
	"github.com/racflow/racflow/engine/interval"
)

// Report is what an evaluation found. Shares are between 0 and 1.
type Report struct {
	Items     int `json:"items"`
	Scored    int `json:"scored"`            // items with an expected label; 0: no election is held
	Decided   int `json:"decided,omitempty"` // items with an expected label that people have decided, and that are not scored for that
	Failed    int `json:"failed"`
	Undecided int `json:"undecided"` // no acceptable answer
	Flagged   int `json:"flagged"`

	// Retrieval is nil where no item has gold passages.
	Retrieval *Retrieval `json:"retrieval,omitempty"`

	// Accuracy is the share of the scored items with the right answer. Out of
	// scope, none is right.
	Accuracy         float64           `json:"accuracy"`
	AccuracyInterval interval.Interval `json:"accuracy_interval"`
	Scope            *Scope            `json:"scope,omitempty"` // nil: every expected label is one of the knowledge's
	// MacroF1 is the mean F1 over all labels that were expected or answered,
	// those out of scope aside.
	MacroF1   float64 `json:"macro_f1"`
	Agreement float64 `json:"agreement"` // mean over the items with an answer

	Flags Flags `json:"flags"`
	// Promised is nil where no file of variables states a promise.
	Promised *Promised `json:"promised,omitempty"`
	// Calibration is nil where no election is held, and where Work alone reported.
	Calibration *Calibration `json:"calibration,omitempty"`

	ItemsPerSecond float64 `json:"items_per_second"`
	P50            float64 `json:"latency_p50_ms"`
	P99            float64 `json:"latency_p99_ms"`

	InputTokens  uint64 `json:"input_tokens"`
	OutputTokens uint64 `json:"output_tokens"`
	// Asked is how many items went to voters over the network, each counted.
	Asked int `json:"asked,omitempty"`
	// Cost is what the answers cost when they were made, by the file's prices;
	// those from a cache cost nothing again.
	Cost float64 `json:"cost,omitempty"`

	Voters []Voter `json:"voters"`
	Labels []Label `json:"labels"`
	// Confused are the pairs of an expected label and a wrong answer, the frequent ones
	// first. Items that failed have none.
	Confused []Confused  `json:"confused"`
	Stages   []StageTime `json:"stages"`
	// Errors are the mistakes that the pipeline was surest of, worst first, as many as
	// Options.Errors asks for.
	Errors []Mistake `json:"errors,omitempty"`
	// Dropped are the voters of whose answers more than 5 % do not count.
	Dropped []dropped.Report `json:"dropped,omitempty"`
}

// Scope separates the items whose expected label the knowledge does not
// have: they are out of scope, and the right answer to them is none.
type Scope struct {
	In       int               `json:"in"`
	Out      int               `json:"out"`
	Accuracy float64           `json:"in_accuracy"` // of the items in scope
	Interval interval.Interval `json:"in_accuracy_interval"`
	// Unanswered is the share of the items in scope that were left without an
	// answer. A failure is not counted as one.
	Unanswered float64 `json:"in_unanswered"`
	// Recall is the share of the items out of scope that were left without.
	Recall         float64           `json:"out_recall"`
	RecallInterval interval.Interval `json:"out_recall_interval"`
}

// Flags say how many errors the flag rule catches at what cost, of the scored items. An
// error is an item without the right answer, failed ones included.
type Flags struct {
	Errors  int `json:"errors"`
	Caught  int `json:"caught"`  // of Errors: flagged
	Flagged int `json:"flagged"` // Caught and Right together
	Right   int `json:"right"`   // of Flagged: false alarms
}

// Label is a row of the per-label table.
type Label struct {
	Label     string  `json:"label"`
	Support   int     `json:"support"` // items that should get it
	Answered  int     `json:"answered"`
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
	F1        float64 `json:"f1"`
}

// StageTime is the work of one stage.
type StageTime struct {
	Stage string  `json:"stage"`
	Rows  int     `json:"rows"`
	Busy  float64 `json:"busy_seconds"` // of its calls, which overlap
}

// Worst returns the labels with the lowest F1, worst first.
func (r Report) Worst(n int) []Label {
	labels := slices.Clone(r.Labels)
	slices.SortStableFunc(labels, func(a, b Label) int { return cmp.Compare(a.F1, b.F1) })
	return labels[:min(n, len(labels))]
}
