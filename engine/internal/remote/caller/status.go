package caller

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/process/governor"
	"github.com/racflow/racflow/engine/internal/remote/bus"
	"github.com/racflow/racflow/engine/internal/remote/lease"
	"github.com/racflow/racflow/engine/internal/show/terminal"
)

// This file computes the status of a run on many machines: its definition, its progress, its
// workers and what they lack, the reason of a wait, and the cost.
//
// It reads the data that the caller, the keeper and the workers store at the servers
// (definition.go), so any machine with read access can compute it. It changes nothing. It knows no
// results of items; the caller's journal does.
//
// All times are the servers', because clocks of machines may differ.

// decide computes the status from the data at the servers.
func decide(d *Definition, states map[string]bus.State, b bus.Backlog) *Status {
	s := &Status{
		Run: d.Run, Started: d.Started, Version: d.Version, File: d.Manifest.File, Pipeline: d.Manifest.Pipeline,
		Input: d.Manifest.Input.Path, Journal: d.Manifest.ID,
		Batches: StatusBatches{Waiting: b.Waiting, UnderWay: b.UnderWay},
	}
	if !b.Oldest.IsZero() {
		s.Batches.Oldest, s.Batches.Age = &b.Oldest, max(b.Now.Sub(b.Oldest).Seconds(), 0)
	}
	s.workers(states, b.Now)
	s.caller(states, b.Now)
	s.keeper(states, b.Now)
	_, ended := states[EndKey]
	s.State, s.Why = s.state(ended)
	return s
}

// gone reports whether the process that stored a state counts as gone.
func gone(state bus.State, now time.Time) bool { return now.Sub(state.At) > WorkerGone }

func (s *Status) workers(states map[string]bus.State, now time.Time) {
	for _, key := range slices.Sorted(maps.Keys(states)) {
		name, ok := strings.CutPrefix(key, WorkerPrefix)
		if !ok {
			continue
		}
		w := StatusWorker{Seen: states[key].At, Gone: gone(states[key], now)}
		if err := json.Unmarshal(states[key].Value, &w.WorkerState); err != nil {
			w.WorkerState = WorkerState{State: Lacks, Lacks: []string{"what it says cannot be read: it may be of another version"}}
		}
		w.Name = name // the key's name is reliable, the value's is not
		s.Workers = append(s.Workers, w)
		s.Failed += w.Failed
		s.Cost += w.Cost
		s.Tokens += w.Tokens
		s.Items.Answered += w.Items
		if w.present() {
			s.Items.Rate += w.Rate
		}
	}
}

func (s *Status) caller(states map[string]bus.State, now time.Time) {
	at, ok := states[CallerKey]
	var c SeenCaller
	if !ok || json.Unmarshal(at.Value, &c) != nil {
		return
	}
	s.Caller = &StatusCaller{Name: c.Name, Host: c.Host, Seen: at.At, Gone: gone(at, now) && !c.Detached, Detached: c.Detached}
	_ = json.Unmarshal(states[AttachedKey].Value, &s.Caller.Attached) // on error no process has attached
	b := &s.Batches
	b.Published, b.Done, b.Total = c.Published, c.Done, c.Total
	b.Answered = max(b.Published-int64(b.Waiting+b.UnderWay), b.Done)
	if s.Items.Total = c.Items; b.Total > 0 { // an estimate by batches: workers' counts include some items twice
		s.Items.Answered = int64(math.Round(float64(c.Items) / float64(b.Total) * float64(b.Answered)))
	}
	left := s.Items.Total - s.Items.Answered
	if s.Items.Total > 0 && s.Items.Rate > 0 && left > 0 {
		s.Items.Left = float64(left) / s.Items.Rate
	}
}

// state returns the run's state and, unless all is well, the reason.
func (s *Status) state(ended bool) (state, why string) {
	working, lacking := s.Working(), 0
	for _, w := range s.Workers {
		if !w.Gone && w.State == Lacks {
			lacking++
		}
	}
	idle := s.Batches.Waiting+s.Batches.UnderWay == 0
	whole := s.Batches.Total > 0 && s.Batches.Published == s.Batches.Total
	switch {
	case ended:
		return RunEnded, ""
	case s.Caller == nil:
		return RunWaiting, "its caller has not begun to publish items"
	case idle && whole && s.Batches.Done == s.Batches.Total:
		return RunWorking, "every answer is with its caller, which writes them"
	case idle && whole && (s.Caller.Gone || s.Caller.Detached):
		return RunAnswered, fmt.Sprintf("racflow runs attach %s takes the answers", s.Run)
	case idle && s.Caller.Gone:
		return RunWaiting, fmt.Sprintf("its caller %s has said nothing since %s: racflow runs resume, where that was, goes on", s.Caller.Name, s.Caller.Seen.Format(time.RFC3339))
	case idle:
		return RunWorking, ""
	case working == 0 && lacking > 0:
		return RunWaiting, "every worker lacks something: see its line"
	case working == 0:
		return RunWaiting, "no worker is there: racflow worker --on SERVERS starts one"
	case s.Caller.Detached:
		return RunDetached, ""
	case s.Caller.Gone:
		return RunDetached, fmt.Sprintf("its caller %s has said nothing since %s", s.Caller.Name, s.Caller.Seen.Format(time.RFC3339))
	}
	return RunWorking, ""
}

// keeper adds the process that admits the workers' calls.
func (s *Status) keeper(states map[string]bus.State, now time.Time) {
	at, ok := states[lease.Key]
	var r lease.Record
	if !ok || json.Unmarshal(at.Value, &r) != nil {
		return
	}
	s.Keeper = &StatusKeeper{
		Name: r.Name, Seen: at.At, Gone: r.ID == "" || gone(at, now), Holders: len(r.Holders),
		Ceiling: r.Ceiling.Amount, Budget: r.Limits.Budget, Blocks: r.Limits.Blocks, Spent: r.Why,
	}
}

// StatusOf returns the present status of a run. While servers cannot answer, it waits until ctx ends.
func StatusOf(ctx context.Context, run *bus.Run) (*Status, error) {
	d, err := DecodeDefinition(run.Definition())
	if err != nil {
		return nil, err
	}
	return statusOf(ctx, run, d)
}

func statusOf(ctx context.Context, run *bus.Run, d *Definition) (*Status, error) {
	states, err := run.All(ctx, "")
	if err != nil {
		return nil, err
	}
	b, err := run.Backlog(ctx) // read after the states, so that batches answered meanwhile do not count as lost
	if err != nil {
		return nil, err
	}
	return decide(d, states, b), nil
}

// States of a run.
const (
	RunWorking  = "working"  // workers answer its items
	RunWaiting  = "waiting"  // no worker answers: Status.Why gives the reason
	RunDetached = "detached" // workers answer its items, and no caller collects the answers yet
	RunAnswered = "answered" // every item is answered, and no caller has collected all answers yet
	RunEnded    = "ended"
)

// Status describes the state of a run.
type Status struct {
	Run      string    `json:"run"`
	State    string    `json:"state"`
	Why      string    `json:"why,omitempty"` // why the run does not proceed, as a sentence
	Started  time.Time `json:"started"`
	Version  string    `json:"racflow"` // of its caller
	File     string    `json:"file"`    // on the caller's machine, like the following
	Pipeline string    `json:"pipeline"`
	Input    string    `json:"input"`
	Journal  string    `json:"journal,omitempty"` // the run's ID in the caller's state folder; empty: it keeps no journal

	Items   StatusItems    `json:"items"`
	Batches StatusBatches  `json:"batches"`
	Caller  *StatusCaller  `json:"caller,omitempty"` // nil: no caller has reported yet
	Keeper  *StatusKeeper  `json:"keeper,omitempty"` // admits calls of services; nil: no process does
	Workers []StatusWorker `json:"workers"`          // by name

	Failed int64   `json:"failed"` // items that workers answered with a failure
	Cost   float64 `json:"cost"`   // cost of workers' calls, by the prices in the file
	Tokens uint64  `json:"tokens"` // input plus output
}

// StatusItems counts the items of the input.
type StatusItems struct {
	Answered int64   `json:"answered"`        // by workers; estimated from batches
	Total    int64   `json:"total,omitempty"` // 0: unknown yet
	Rate     float64 `json:"rate"`            // items answered per second now, by all workers
	Left     float64 `json:"left,omitempty"`  // remaining seconds at this rate; 0: unknown
}

// StatusBatches counts the batches of the run.
type StatusBatches struct {
	Published int64      `json:"published"`
	Answered  int64      `json:"answered"`
	Done      int64      `json:"done"`  // the caller has their results
	Total     int64      `json:"total"` // 0: unknown yet
	Waiting   int        `json:"waiting"`
	UnderWay  int        `json:"under_way"`
	Oldest    *time.Time `json:"oldest,omitempty"` // when the oldest waiting or unfinished batch was published; nil: there is none
	Age       float64    `json:"age,omitempty"`    // of that batch, in seconds
}

// StatusCaller describes the process that has the run's input and output.
type StatusCaller struct {
	Name     string    `json:"name"`
	Host     string    `json:"host"`
	Seen     time.Time `json:"seen"`
	Gone     bool      `json:"gone,omitempty"` // it has not reported for long
	Detached bool      `json:"detached,omitempty"`
	Attached string    `json:"attached,omitempty"` // the process that attached last to the detached run; empty: none yet
}

// StatusWorker describes a process that takes part, or cannot.
type StatusWorker struct {
	WorkerState
	Seen time.Time `json:"seen"`
	Gone bool      `json:"gone,omitempty"` // it has not reported for long: other workers get its batches
}

// StatusKeeper describes the process that admits the workers' calls.
type StatusKeeper struct {
	Name    string           `json:"name"`
	Seen    time.Time        `json:"seen"`
	Gone    bool             `json:"gone,omitempty"`   // it has not reported for long, or has left: another takes over
	Holders int              `json:"holders"`          // workers whose calls it admits
	Ceiling lease.Amount     `json:"leased,omitzero"`  // the part of the budget that is spent, or may be by calls under way
	Budget  lease.Amount     `json:"budget,omitzero"`  // 0: no limit
	Spent   string           `json:"spent,omitempty"`  // why it admits no more calls
	Blocks  []pipeline.Limit `json:"blocks,omitempty"` // limits in the file that all machines share
}

// Attended reports whether a caller works on the run.
func (s *Status) Attended() bool {
	return s.State != RunEnded && s.Caller != nil && !s.Caller.Gone && !s.Caller.Detached
}

// Working returns how many workers take part in the run now.
func (s *Status) Working() (n int) {
	for _, w := range s.Workers {
		if w.present() && w.State != Lacks {
			n++
		}
	}
	return n
}

func (w StatusWorker) present() bool { return !w.Gone && w.State != Left }

// Is returns the worker's state as a word.
func (w StatusWorker) Is() string {
	if w.Gone && w.State != Left {
		return "gone since " + w.Seen.Format(time.TimeOnly)
	}
	return w.State
}

// String describes the process that has the run's input and output.
func (c *StatusCaller) String() string {
	text := fmt.Sprintf("%s on %s", c.Name, c.Host)
	switch {
	case c.Detached && c.Attached != "":
		text += ", has left the run to its workers; " + c.Attached + " has come back to it"
	case c.Detached:
		text += ", has left the run to its workers"
	case c.Gone:
		text += ", gone since " + c.Seen.Format(time.TimeOnly)
	}
	return text
}

// String describes the process that admits the workers' calls.
func (k *StatusKeeper) String() string {
	text := k.Name
	if k.Gone {
		text += ", gone since " + k.Seen.Format(time.TimeOnly) + ","
	}
	text += " admits the calls of " + terminal.Plural(k.Holders, "worker")
	if k.Budget.Cost > 0 {
		text += fmt.Sprintf(", %s of %s", governor.Money(k.Ceiling.Cost), governor.Money(k.Budget.Cost))
	}
	if k.Budget.Tokens > 0 {
		text += fmt.Sprintf(", %d of %d tokens", k.Ceiling.Tokens, k.Budget.Tokens)
	}
	for _, l := range k.Blocks {
		text += fmt.Sprintf(", limit %q of %d at a time", l.Name, l.Concurrency)
	}
	if k.Spent != "" {
		text += "; " + k.Spent
	}
	return text
}
