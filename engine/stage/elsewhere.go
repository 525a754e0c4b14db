package stage

import (
	"slices"
	"time"

	"github.com/racflow/racflow/engine/outcome"
)

// Answer is what became of a record on another machine.
type Answer struct {
	Result outcome.Result // without what comes from the row
	Left   bool           // it is left for a resumed run; see Graph.Result
}

// Open reports whether the stages have to be asked about the record: its row can be used, and
// neither an earlier part of the run nor a person has answered it.
func (r *Record) Open() bool {
	return r.Row.Err == nil && r.Earlier == nil && r.decided == nil
}

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

// workedElsewhere is what Worked was told of a stage.
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
