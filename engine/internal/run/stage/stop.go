package stage

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
)

// Halt notes stages that had to stop on another machine, where this graph's stages are asked.
// ended is why nothing more can be answered there; nil: the other stages go on.
func (g *Graph) Halt(halted []*outcome.Failure, ended error) {
	g.mu.Lock()
	for _, f := range halted {
		at := slices.IndexFunc(g.stages, func(s *stage) bool { return s != nil && s.String() == f.Stage })
		if at >= 0 && !g.lost[at] {
			g.lost[at] = true
			g.halted = append(g.halted, f)
		}
	}
	g.mu.Unlock()
	if ended != nil {
		g.ending.begin(ended)
	}
}

// Worked adds what stages have done on another machine to Times, and the voters that returned
// distributions there to Distributions.
func (g *Graph) Worked(times []outcome.StageTime, distributions []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, t := range times {
		at := slices.IndexFunc(g.elsewhere, func(e outcome.StageTime) bool { return e.Stage == t.Stage })
		if at < 0 {
			at = len(g.elsewhere)
			g.elsewhere = append(g.elsewhere, outcome.StageTime{Stage: t.Stage})
		}
		g.elsewhere[at].Rows += t.Rows
		g.elsewhere[at].Busy += t.Busy
	}
	for _, v := range g.voters {
		if slices.Contains(distributions, g.stages[v].Name) {
			g.stages[v].spread.Store(true)
		}
	}
}

// workedElsewhere is what Worked got of a stage.
func (g *Graph) workedElsewhere(stage string) (rows int, busy time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, t := range g.elsewhere {
		if t.Stage == stage {
			return t.Rows, t.Busy
		}
	}
	return 0, 0
}

// ending is the end of a stage, or of a graph before that of its input: nothing more
// is begun.
type ending struct {
	once  sync.Once
	begun chan struct{} // closed once it is known
	cause error
}

func newEnding() *ending { return &ending{begun: make(chan struct{})} }

func (e *ending) begin(cause error) {
	e.once.Do(func() {
		e.cause = cause
		close(e.begun)
	})
}

// err returns the cause; nil: nothing ends.
func (e *ending) err() error {
	select {
	case <-e.begun:
		return e.cause
	default:
		return nil
	}
}

// Ended is closed when the graph ends before its input; Err says why.
func (g *Graph) Ended() <-chan struct{} { return g.ending.begun }

// Err is why the graph ends before its input; nil: it does not.
func (g *Graph) Err() error { return g.ending.err() }

// Halted returns the stages that had to stop.
func (g *Graph) Halted() []*outcome.Failure {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.halted)
}

// stopOf returns the error by which a stage says that it has to stop, among the
// errors of a call; nil: there is none.
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

// stops reports whether the item did not fail, but its stage had to stop.
func stops(f *outcome.Failure) bool { return f != nil && sdk.CodeOf(f.Err) == sdk.CodeStopped }

// unavailable reports whether the item did not fail, but the service of the stage cannot be asked about it
// now: it is down, has no quota left for us, or the run is offline.
func (s *stage) unavailable(f *outcome.Failure) bool {
	network := s.Info.Network || s.Retrieve != nil && s.Retrieve.From.Embed.Info.Network
	return f != nil && network && sdk.CodeOf(f.Err) == sdk.CodeUnavailable
}

// stop notes that a stage has to stop. Where the election can be held without it,
// items are read on; else the graph ends.
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

// Covered returns the stages, as "sample.llm", whose services the election can do without for a time: it can be
// held without any stage that calls one.
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

// electsWithout reports whether the election can be held without the stages that are
// lost and those that need them.
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

// names reports whether a rule of an election asks what a certain voter answered.
func (s *stage) names(voter *stage) bool {
	return slices.ContainsFunc([]*rule.Rule{s.When, s.Accept, s.Flag}, func(r *rule.Rule) bool {
		return r.Reads("votes") && r.Mentions(voter.Name)
	})
}

// idle reports whether nothing reads the prompts of the stage any more.
func (s *stage) idle() bool {
	return len(s.readers) > 0 && !slices.ContainsFunc(s.readers, func(r *stage) bool { return !r.stopped.Load() })
}

// lacks returns what the stage lacks for an item because another one had to stop;
// nil: nothing.
func (s *stage) lacks(rec *Record) *outcome.Failure {
	if s.Block == "elect" {
		return rec.missing(s.in.firm)
	}
	return rec.missing(s.in.needs)
}

// asks reports whether the when rule of a stage can be evaluated for an item, although
// the stage lacks something: what the rule reads is there.
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

// without returns the voters that are missing for an item, and whether it is left for
// a resumed run: without them there is no answer to it, or none is wanted. What is left is without one stage at
// least.
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
