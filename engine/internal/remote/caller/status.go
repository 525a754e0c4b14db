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

	"github.com/racflow/racflow/engine/internal/process/governor"
	"github.com/racflow/racflow/engine/internal/remote/bus"
	"github.com/racflow/racflow/engine/internal/remote/lease"
	"github.com/racflow/racflow/engine/internal/show/terminal"
)

// This file says how a run on many machines is: what it is, how far it came, who takes part and
// who lacks what for it, what waits and what it costs.
//
// It reads what the caller, the keeper and the workers put at the servers (definition.go), so
// that any machine that may read there can say it; it changes nothing. What is not at the servers,
// such as the results of items, it does not know: the caller's journal does.
//
// Times are the servers': clocks of machines may differ.

// decide makes the status of what is at the servers.
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

// gone reports whether who put a state is not there any more.
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
		w.Name = name // which alone the servers vouch for
		s.Workers = append(s.Workers, w)
		s.Failed += w.Failed
		s.Cost += w.Cost
		s.Tokens += w.Tokens
		s.Items.Answered += w.Items
		if !w.Gone {
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
	s.Caller = &StatusCaller{Name: c.Name, Host: c.Host, Part: c.Part, Seen: at.At, Gone: gone(at, now) && !c.Detached, Detached: c.Detached}
	_ = json.Unmarshal(states[AttachedKey].Value, &s.Caller.Attached) // nobody did
	b := &s.Batches
	b.Published, b.Done, b.Total = c.Published, c.Done, c.Total
	b.Answered = max(b.Published-int64(b.Waiting+b.UnderWay), b.Done)
	if s.Items.Total = c.Items; b.Total > 0 { // what workers say may count an item twice, and of who is forgotten nothing
		s.Items.Answered = int64(math.Round(float64(c.Items) / float64(b.Total) * float64(b.Answered)))
	}
	left := s.Items.Total - s.Items.Answered
	if s.Items.Total > 0 && s.Items.Rate > 0 && left > 0 {
		s.Items.Left = float64(left) / s.Items.Rate
	}
}

// state says how the run is, in a word, and why where that is not as it should be.
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

// keeper says who hands out leases, and what of.
func (s *Status) keeper(states map[string]bus.State, now time.Time) {
	at, ok := states[lease.LedgerKey]
	var l lease.Ledger
	if !ok || json.Unmarshal(at.Value, &l) != nil {
		return
	}
	k := &StatusKeeper{Seen: at.At, Budget: l.Limits.Budget, Blocks: l.Limits.Blocks, Spent: l.Spent}
	var claim lease.Claim
	if at, ok := states[lease.ClaimKey]; ok && json.Unmarshal(at.Value, &claim) == nil { // the ledger is written when something changes
		k.Name, k.Seen, k.Gone = claim.Name, at.At, gone(at, now)
	}
	for _, h := range l.Holders {
		k.Leased.Cost += h.Most.Cost - h.Base.Cost
		k.Leased.Tokens += h.Most.Tokens - h.Base.Tokens
		if !h.Gone {
			k.Holders++
		}
	}
	s.Keeper = k
}

// StatusOf says how a run is now. It waits for servers that cannot answer, until ctx ends.
func StatusOf(ctx context.Context, run *bus.Run) (*Status, error) {
	d, err := DecodeDefinition(run.Definition())
	if err != nil {
		return nil, err
	}
	states, err := run.All(ctx, "")
	if err != nil {
		return nil, err
	}
	b, err := run.Backlog(ctx) // after the states: what is answered meanwhile is not taken for lost
	if err != nil {
		return nil, err
	}
	return decide(d, states, b), nil
}

// States of a run.
const (
	RunWorking  = "working"  // workers answer its items
	RunWaiting  = "waiting"  // nobody answers anything: State.Why says what it waits for
	RunDetached = "detached" // workers answer its items, and nobody takes what they answer yet
	RunAnswered = "answered" // every item is answered, and no caller has taken all answers yet
	RunEnded    = "ended"
)

// Status is how a run is.
type Status struct {
	Run      string    `json:"run"`
	State    string    `json:"state"`
	Why      string    `json:"why,omitempty"` // nobody works, or what keeps the run from going on; a sentence
	Started  time.Time `json:"started"`
	Version  string    `json:"racflow"` // of its caller
	File     string    `json:"file"`    // on the machine of its caller, as the rest
	Pipeline string    `json:"pipeline"`
	Input    string    `json:"input"`
	Journal  string    `json:"journal,omitempty"` // the run's ID in the caller's state folder; empty: it keeps none

	Items   StatusItems    `json:"items"`
	Batches StatusBatches  `json:"batches"`
	Caller  *StatusCaller  `json:"caller,omitempty"` // nil: none has said anything
	Keeper  *StatusKeeper  `json:"keeper,omitempty"` // who hands out leases; nil: nobody does
	Workers []StatusWorker `json:"workers"`          // by name

	Failed int64   `json:"failed"` // items that workers answered with a failure
	Cost   float64 `json:"cost"`   // of workers' calls, by the prices in the file
	Tokens uint64  `json:"tokens"` // in and out
}

// StatusItems are those of the input.
type StatusItems struct {
	Answered int64   `json:"answered"`        // by workers, about: batches are counted
	Total    int64   `json:"total,omitempty"` // 0: not known yet
	Rate     float64 `json:"rate"`            // answered per second now, by all workers
	Left     float64 `json:"left,omitempty"`  // seconds, at this rate; 0: nobody knows
}

// StatusBatches are those of the part that the caller published last.
type StatusBatches struct {
	Published int64      `json:"published"`
	Answered  int64      `json:"answered"`
	Done      int64      `json:"done"`  // their results are with the caller
	Total     int64      `json:"total"` // 0: not known yet
	Waiting   int        `json:"waiting"`
	UnderWay  int        `json:"under_way"`
	Oldest    *time.Time `json:"oldest,omitempty"` // when the first of those that wait or are under way was published; nil: there are none
	Age       float64    `json:"age,omitempty"`    // of it, in seconds
}

// StatusCaller is the process that has the run's input and output.
type StatusCaller struct {
	Name     string    `json:"name"`
	Host     string    `json:"host"`
	Part     int       `json:"part"` // 2 and more: the run was resumed
	Seen     time.Time `json:"seen"`
	Gone     bool      `json:"gone,omitempty"` // it has said nothing for long
	Detached bool      `json:"detached,omitempty"`
	Attached string    `json:"attached,omitempty"` // who came back last to the run that it detached; empty: nobody yet
}

// StatusWorker is a process that takes part, or cannot.
type StatusWorker struct {
	WorkerState
	Seen time.Time `json:"seen"`
	Gone bool      `json:"gone,omitempty"` // it has said nothing for long: its batches go to others
}

// StatusKeeper is who hands out the leases of limits and budget.
type StatusKeeper struct {
	Name    string        `json:"name"` // empty: nobody, another takes over
	Seen    time.Time     `json:"seen"`
	Gone    bool          `json:"gone,omitempty"`   // it has said nothing for long: another takes over
	Holders int           `json:"holders"`          // workers that have leases
	Leased  lease.Amount  `json:"leased,omitzero"`  // of the budget: what workers have spent or may spend
	Budget  lease.Amount  `json:"budget,omitzero"`  // 0: any
	Spent   string        `json:"spent,omitempty"`  // why nothing is leased any more
	Blocks  []lease.Limit `json:"blocks,omitempty"` // limits of the file that calls keep to together
}

// Attended reports whether a caller is at work on the run.
func (s *Status) Attended() bool {
	return s.State != RunEnded && s.Caller != nil && !s.Caller.Gone && !s.Caller.Detached
}

// Working is how many workers take part in the run now.
func (s *Status) Working() (n int) {
	for _, w := range s.Workers {
		if !w.Gone && w.State != Lacks {
			n++
		}
	}
	return n
}

// Is says how the worker is, in a word.
func (w StatusWorker) Is() string {
	if w.Gone {
		return "gone since " + w.Seen.Format(time.TimeOnly)
	}
	return w.State
}

// String says who has the run's input and output.
func (c *StatusCaller) String() string {
	text := fmt.Sprintf("%s on %s", c.Name, c.Host)
	if c.Part > 1 {
		text += fmt.Sprintf(", part %d", c.Part)
	}
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

// String says who hands out leases, and what of.
func (k *StatusKeeper) String() string {
	text := k.Name
	switch {
	case text == "":
		text = "nobody"
	case k.Gone:
		text += ", gone since " + k.Seen.Format(time.TimeOnly) + ","
	}
	text += " leases to " + terminal.Plural(k.Holders, "worker")
	if k.Budget.Cost > 0 {
		text += fmt.Sprintf(", %s of %s", governor.Money(k.Leased.Cost), governor.Money(k.Budget.Cost))
	}
	if k.Budget.Tokens > 0 {
		text += fmt.Sprintf(", %d of %d tokens", k.Leased.Tokens, k.Budget.Tokens)
	}
	for _, l := range k.Blocks {
		text += fmt.Sprintf(", limit %q of %d at a time", l.Name, l.Concurrency)
	}
	if k.Spent != "" {
		text += "; " + k.Spent
	}
	return text
}
