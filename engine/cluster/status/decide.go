package status

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/cluster/bus"
	"github.com/racflow/racflow/engine/cluster/definition"
	"github.com/racflow/racflow/engine/cluster/lease"
)

// decide makes the status of what is at the servers.
func decide(d *definition.Definition, states map[string]bus.State, b bus.Backlog) *Status {
	s := &Status{
		Run: d.Run, Started: d.Started, Version: d.Version, File: d.Manifest.File, Pipeline: d.Manifest.Pipeline,
		Input: d.Manifest.Input.Path, Journal: d.Manifest.ID,
		Batches: Batches{Waiting: b.Waiting, UnderWay: b.UnderWay},
	}
	if !b.Oldest.IsZero() {
		s.Batches.Oldest, s.Batches.Age = &b.Oldest, max(b.Now.Sub(b.Oldest).Seconds(), 0)
	}
	s.workers(states, b.Now)
	s.caller(states, b.Now)
	s.keeper(states, b.Now)
	_, ended := states[definition.EndKey]
	s.State, s.Why = s.state(ended)
	return s
}

// gone reports whether who put a state is not there any more.
func gone(state bus.State, now time.Time) bool { return now.Sub(state.At) > definition.WorkerGone }

func (s *Status) workers(states map[string]bus.State, now time.Time) {
	for _, key := range slices.Sorted(maps.Keys(states)) {
		name, ok := strings.CutPrefix(key, definition.WorkerPrefix)
		if !ok {
			continue
		}
		w := Worker{Seen: states[key].At, Gone: gone(states[key], now)}
		if err := json.Unmarshal(states[key].Value, &w.Worker); err != nil {
			w.Worker = definition.Worker{State: definition.Lacks, Lacks: []string{"what it says cannot be read: it may be of another version"}}
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
	at, ok := states[definition.CallerKey]
	var c definition.CallerState
	if !ok || json.Unmarshal(at.Value, &c) != nil {
		return
	}
	s.Caller = &Caller{Name: c.Name, Host: c.Host, Part: c.Part, Seen: at.At, Gone: gone(at, now) && !c.Detached, Detached: c.Detached}
	_ = json.Unmarshal(states[definition.AttachedKey].Value, &s.Caller.Attached) // nobody did
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
		if !w.Gone && w.State == definition.Lacks {
			lacking++
		}
	}
	idle := s.Batches.Waiting+s.Batches.UnderWay == 0
	whole := s.Batches.Total > 0 && s.Batches.Published == s.Batches.Total
	switch {
	case ended:
		return Ended, ""
	case s.Caller == nil:
		return Waiting, "its caller has not begun to publish items"
	case idle && whole && s.Batches.Done == s.Batches.Total:
		return Working, "every answer is with its caller, which writes them"
	case idle && whole && (s.Caller.Gone || s.Caller.Detached):
		return Answered, fmt.Sprintf("racflow runs attach %s takes the answers", s.Run)
	case idle && s.Caller.Gone:
		return Waiting, fmt.Sprintf("its caller %s has said nothing since %s: racflow runs resume, where that was, goes on", s.Caller.Name, s.Caller.Seen.Format(time.RFC3339))
	case idle:
		return Working, ""
	case working == 0 && lacking > 0:
		return Waiting, "every worker lacks something: see its line"
	case working == 0:
		return Waiting, "no worker is there: racflow worker --on SERVERS starts one"
	case s.Caller.Detached:
		return Detached, ""
	case s.Caller.Gone:
		return Detached, fmt.Sprintf("its caller %s has said nothing since %s", s.Caller.Name, s.Caller.Seen.Format(time.RFC3339))
	}
	return Working, ""
}

// keeper says who hands out leases, and what of.
func (s *Status) keeper(states map[string]bus.State, now time.Time) {
	at, ok := states[lease.LedgerKey]
	var l lease.Ledger
	if !ok || json.Unmarshal(at.Value, &l) != nil {
		return
	}
	k := &Keeper{Seen: at.At, Budget: l.Limits.Budget, Blocks: l.Limits.Blocks, Spent: l.Spent}
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
