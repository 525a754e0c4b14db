package stage

import (
	"errors"
	"slices"
	"sync"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
)

// ending is the early end of a stage or of a graph: no more work begins.
type ending struct {
	once  sync.Once
	begun chan struct{} // closed when the end begins
	cause error
}

func newEnding() *ending { return &ending{begun: make(chan struct{})} }

func (e *ending) begin(cause error) {
	e.once.Do(func() {
		e.cause = cause
		close(e.begun)
	})
}

// err returns the cause; nil: the end has not begun.
func (e *ending) err() error {
	select {
	case <-e.begun:
		return e.cause
	default:
		return nil
	}
}

// Ended returns a channel that is closed when the graph ends before its input; Err says why.
func (g *Graph) Ended() <-chan struct{} { return g.ending.begun }

// Err returns why the graph ended before its input; nil: it has not ended.
func (g *Graph) Err() error { return g.ending.err() }

// Halted returns the stages that had to stop.
func (g *Graph) Halted() []*outcome.Failure {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.halted)
}

// stopOf finds, among the errors of a call, the error that stops the stage; nil: there is none.
func stopOf(err error) error {
	var rows sdk.RowErrors
	if errors.As(err, &rows) {
		for _, err := range rows {
			if stop := stopOf(err); stop != nil {
				return stop
			}
		}
		return nil
	}
	if sdk.CodeOf(err) == sdk.CodeStopped {
		return err
	}
	return nil
}

// stops reports whether the failure is a stopped stage instead of a failed item.
func stops(f *outcome.Failure) bool { return f != nil && sdk.CodeOf(f.Err) == sdk.CodeStopped }

// unavailable reports whether the failure is an unavailable service instead of a failed item: the service
// is down or has no quota left, or the run is offline.
func (s *stage) unavailable(f *outcome.Failure) bool {
	network := s.Info.Network || s.Retrieve != nil && s.Retrieve.From.Embed.Info.Network
	return f != nil && network && sdk.CodeOf(f.Err) == sdk.CodeUnavailable
}

// stop records that a stage has to stop. If the election can be held without it, the run continues;
// otherwise the graph ends.
func (g *Graph) stop(s *stage, cause error) {
	s.ending.begin(cause)
	s.stopped.Store(true)
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.lost[s.index] {
		g.lost[s.index] = true
		g.halted = append(g.halted, &outcome.Failure{Stage: s.String(), Err: cause})
	}
	if g.electsWithout(g.lost) {
		return
	}
	g.ending.begin(cause)
	for _, s := range g.stages {
		if s != nil {
			s.ending.begin(cause)
			for _, f := range s.fallbacks {
				f.ending.begin(cause)
			}
		}
	}
}

// Covered returns the stages that call services, as "sample.llm", if the election can be held without all of
// them for a time; otherwise none.
func (g *Graph) Covered() []string {
	lost := make([]bool, len(g.stages))
	var names []string
	for i, s := range g.stages {
		if lost[i] = s != nil && s.Info.Network; lost[i] {
			names = append(names, s.String())
		}
	}
	if !g.electsWithout(lost) {
		return nil
	}
	return names
}

// electsWithout reports whether the election can be held without the lost stages and without the
// stages that need them.
func (g *Graph) electsWithout(lost []bool) bool {
	if g.options.Strict || g.elect < 0 {
		return false
	}
	gone := func(i int) bool {
		return lost[i] || slices.ContainsFunc(g.stages[i].in.needs, func(n int) bool { return lost[n] })
	}
	e := g.stages[g.elect]
	if lost[g.elect] || slices.ContainsFunc(e.in.firm, gone) {
		return false
	}
	return slices.ContainsFunc(e.in.voters, func(v int) bool { return !gone(v) && !g.stages[v].abstains() })
}

// idle reports whether no running stage reads this stage's prompts any more.
func (s *stage) idle() bool {
	return len(s.readers) > 0 && !slices.ContainsFunc(s.readers, func(r *stage) bool { return !r.stopped.Load() })
}

// lacks returns a missing stage that this stage needs for an item; nil: none is missing.
func (s *stage) lacks(rec *Record) *outcome.Failure {
	if s.Block == "elect" {
		return rec.missing(s.in.firm)
	}
	return rec.missing(s.in.needs)
}

// asks reports whether the when rule of a stage can be evaluated for an item although an input of
// the stage is missing. This is possible if everything that the rule reads is available.
func (s *stage) asks(rec *Record) bool {
	var reads []int
	if s.When.Reads("margin") || s.When.Reads("agreement") || s.When.Reads("votes") {
		reads = append(reads, s.in.voters...)
	}
	if s.in.found >= 0 && (s.When.Reads("candidates") || s.When.Reads("candidate_labels")) {
		reads = append(reads, s.in.found)
	}
	return rec.missing(reads) == nil
}

// without returns the voters that are missing for an item. left means that the item waits for a resumed
// run, because without these voters it has no answer, or no answer is wanted; then at least one stage is
// returned.
func (g *Graph) without(rec *Record) (voters []*outcome.Failure, left bool) {
	if g.options.Strict || g.elect < 0 {
		for i := range rec.outputs {
			if f := rec.outputs[i].missing; f != nil {
				return []*outcome.Failure{f}, true
			}
		}
		return nil, false
	}
	for _, v := range g.voters {
		if f := rec.outputs[v].missing; f != nil {
			voters = append(voters, f)
		}
	}
	decided := rec.verdict.Answer != "" || rec.verdict.Reason == ballot.NoLabelFits || rec.verdict.Reason == notAnswered
	f := rec.outputs[g.elect].missing
	if f != nil && len(voters) == 0 {
		voters = []*outcome.Failure{f}
	}
	return voters, f != nil || len(voters) > 0 && !decided
}
