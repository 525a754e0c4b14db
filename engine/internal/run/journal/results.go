package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/sdk"
)

// Status is the state of an item of a run.
type Status int

// States of items.
const (
	Answered    Status = iota
	Provisional        // a voter is missing from the answer
	Failed             // a stage failed, or the row cannot be used
	Unreached          // the run ended before reaching it
)

var statusNames = [...]string{Answered: "answered", Provisional: "provisional", Failed: "failed", Unreached: "not reached"}

func (s Status) String() string { return statusNames[s] }

// MarshalText implements encoding.TextMarshaler.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Status) UnmarshalText(text []byte) error {
	at := slices.Index(statusNames[:], string(text))
	if at < 0 {
		return fmt.Errorf("%q is not what an item comes to", text)
	}
	*s = Status(at)
	return nil
}

// Item is a row of a run's input with its result.
type Item struct {
	Row    source.Row
	Status Status
	// Result is the run's result, without the parts in Seen, and without Skipped and Latency, which
	// are not kept. For an Unreached item it has only the row's values.
	Result outcome.Result
	Seen   *Seen // nil: the journal does not have it
}

// Results yields the items of the run in the order of the input, up to the run's limit. next returns the rows of
// the whole input (io.EOF ends them; see Manifest.Rows). For a run that is being written, it yields the items
// kept so far, if Index was called. An error of next comes last, with an empty Item.
func (j *Journal) Results(next func() (source.Row, error)) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for n := 0; j.Manifest.Limit == 0 || n < j.Manifest.Limit; n++ {
			row, err := next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(Item{}, err)
				return
			}
			if j.Manifest.Share.Has(n) && !yield(j.Item(row), nil) {
				return
			}
		}
	}
}

// Kept yields the items that the run has kept, by line, without reading the input: rows have only
// line, id and label. It leaves out items that the run did not reach.
func (j *Journal) Kept() iter.Seq[Item] {
	return func(yield func(Item) bool) {
		j.mu.Lock()
		statuses := map[int]Status{}
		for _, status := range []Status{Provisional, Failed, Answered} { // the last one counts
			for line := range j.files[status].known {
				statuses[line] = status
			}
		}
		j.mu.Unlock()
		for _, line := range slices.Sorted(maps.Keys(statuses)) {
			j.mu.Lock()
			e := j.files[statuses[line]].entry(line)
			j.mu.Unlock()
			if e == nil {
				continue
			}
			item := Item{Row: source.Row{Line: line, ID: e.ID, Label: e.Expected}, Status: statuses[line], Result: e.whole(), Seen: e.Seen}
			j.complete(&item)
			if !yield(item) {
				return
			}
		}
	}
}

// Item returns a row of the input with its result.
func (j *Journal) Item(row source.Row) Item {
	item := Item{Row: row, Status: Unreached}
	for _, status := range []Status{Answered, Failed, Provisional} {
		if row.Err != nil && status != Failed {
			continue
		}
		if e := j.entry(status, row); e != nil {
			item.Status, item.Result, item.Seen = status, e.whole(), e.Seen
			break
		}
	}
	j.complete(&item)
	return item
}

// complete sets the fields of a result that come from the row and the manifest.
func (j *Journal) complete(item *Item) {
	row, r := &item.Row, &item.Result
	r.Line, r.ID, r.Text, r.Expected, r.Gold = row.Line, nameOf(*row), row.Text, source.Renames(j.Manifest.Renames).In(j.Manifest.LabelForm, row.Label), row.Gold
	if row.ID != "" {
		r.ID = row.ID
	}
	if file, line := row.Place(); file != "" {
		r.File, r.FileLine = file, line
	}
	r.Fields, r.Form = row.Fields, j.Manifest.LabelForm
	r.RetrievalOnly, r.FreeText = j.Manifest.Answers == PassageAnswers, j.Manifest.Answers == TextAnswers
	if item.Status == Failed && row.Err != nil {
		r.Failure = &outcome.Failure{Err: row.Err}
	}
}

// spent is a voter's usage and cost for an item. In JSON it is [input tokens, cached input tokens,
// output tokens], followed by the cost if there is one.
type spent struct {
	sdk.Usage
	cost float64
}

// MarshalJSON implements json.Marshaler.
func (s spent) MarshalJSON() ([]byte, error) {
	all := []any{s.InputTokens, s.CachedTokens, s.OutputTokens}
	if s.cost != 0 {
		all = append(all, s.cost)
	}
	return json.Marshal(all)
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *spent) UnmarshalJSON(text []byte) error {
	var all []json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	to := []any{&s.InputTokens, &s.CachedTokens, &s.OutputTokens, &s.cost}
	if len(all) < 3 || len(all) > len(to) {
		return fmt.Errorf("what a voter took are three or four numbers, and not %d", len(all))
	}
	for i := range all {
		if err := json.Unmarshal(all[i], to[i]); err != nil {
			return err
		}
	}
	return nil
}

// spend sets the usage and cost of each voter.
func (e *entry) spend(r *outcome.Result) {
	for voter, usage := range r.Usages {
		if e.Spent == nil {
			e.Spent = map[string]spent{}
		}
		e.Spent[voter] = spent{usage, r.Costs[voter]}
	}
}

// took sums usage and cost over the voters, in the order in which a result sums costs.
func (e *entry) took() (usage sdk.Usage, cost float64) {
	for _, voter := range slices.Sorted(maps.Keys(e.Spent)) {
		s := e.Spent[voter]
		usage.Add(s.Usage)
		cost += s.cost
	}
	return usage, cost
}

// whole is result with the parts that a resumed run does not need: each voter's usage and cost, and
// the votes about a failed item.
func (e *entry) whole() outcome.Result {
	r := e.result()
	for voter, s := range e.Spent {
		if r.Usages == nil {
			r.Usages, r.Costs = map[string]sdk.Usage{}, map[string]float64{}
		}
		if r.Usages[voter] = s.Usage; s.cost != 0 {
			r.Costs[voter] = s.cost
		}
	}
	if e.Answer == nil {
		r.Votes = e.Votes
	}
	return r
}

// Totals sum up a run at its end.
type Totals struct {
	Ended time.Time `json:"ended"`
	// Complete means that the run reached the end of the input, or its limit.
	Complete bool   `json:"complete"`
	Reason   string `json:"reason,omitempty"` // why Complete is false, or answers are provisional

	Items     int `json:"items"`   // in the output
	Earlier   int `json:"earlier"` // of Items: answered by an earlier part of the run
	Answered  int `json:"answered"`
	Undecided int `json:"undecided"`
	Decided   int `json:"decided,omitempty"` // by people
	Flagged   int `json:"flagged"`
	Failed    int `json:"failed"`
	Left      int `json:"left"` // read but not answered
	// Provisional counts items answered without a stopped voter.
	Provisional int `json:"provisional,omitempty"`
	// FailedPaid counts failed items that a model had been asked about.
	FailedPaid int `json:"failed_paid,omitempty"`
	// Unusable counts failed items whose rows cannot be used: resuming the run does not help.
	Unusable int `json:"unusable,omitempty"`

	InputTokens  uint64  `json:"input_tokens"` // of all answers, including earlier parts of the run
	CachedTokens uint64  `json:"cached_tokens"`
	OutputTokens uint64  `json:"output_tokens"`
	Cost         float64 `json:"cost,omitempty"` // of these tokens, by the prices in the file

	Seconds float64     `json:"seconds"`
	Stages  []StageTime `json:"stages"`
}

// Unfinished reports whether answers are missing: the run was cut off (t is nil), it ended before
// its input, items were left, or answers are provisional. A resumed run also tries failed items
// again, but they may fail for good.
func (t *Totals) Unfinished() bool {
	return t == nil || !t.Complete || t.Left > 0 || t.Provisional > 0
}

// owes reports whether the run has paid results that only resuming can use: it is unfinished, or
// items failed after models were asked about them.
func (t *Totals) owes() bool { return t.Unfinished() || t.FailedPaid > 0 }

// StageTime is the work of one stage.
type StageTime struct {
	Stage string  `json:"stage"`
	Rows  int     `json:"rows"`
	Busy  float64 `json:"busy_seconds"` // sum over its calls, which overlap
}

// Times returns how long the run and its stages took.
func (t *Totals) Times() outcome.Totals {
	took := outcome.Totals{Elapsed: seconds(t.Seconds)}
	for _, s := range t.Stages {
		took.Stages = append(took.Stages, outcome.StageTime{Stage: s.Stage, Rows: s.Rows, Busy: seconds(s.Busy)})
	}
	return took
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// NewTotals sums up a run. It is complete if err is nil.
func NewTotals(t outcome.Totals, err error) *Totals {
	end := &Totals{
		Ended: now(), Complete: err == nil,
		Items: t.Items, Earlier: t.Earlier, Answered: t.Answered, Undecided: t.Undecided, Decided: t.Decided, Flagged: t.Flagged, Failed: t.Failed, Left: t.Left, Provisional: t.Provisional, FailedPaid: t.FailedPaid, Unusable: t.Unusable,
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

// now returns the time as a run's files keep it.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }
