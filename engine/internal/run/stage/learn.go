package stage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/progress"
	"github.com/racflow/racflow/engine/internal/run/fitted"
	"github.com/racflow/racflow/sdk"
)

// free returns a copy of a stage for held-out rows, without fallbacks that call services. nil: the
// stage does not run, because it calls a service or is an election.
func free(s *pipeline.Stage) *pipeline.Stage {
	if s.Block == "elect" || s.Info.Network {
		return nil
	}
	one := *s
	one.Fallbacks = slices.DeleteFunc(slices.Clone(s.Fallbacks), func(f pipeline.Fallback) bool { return f.Stage.Info.Network })
	return &one
}

// runs returns the copy of a stage that the graph runs; nil: the graph does not run it.
func (o *Options) runs(s *pipeline.Stage) *pipeline.Stage {
	switch {
	case o.Holdout == nil:
		return s
	case o.Calls:
		return s
	}
	return free(s)
}

// HoldOut returns a graph for items that are rows held out of the knowledge. The graph shares the
// knowledge of g, and has its own processes, which done ends. A stage that learns has one process
// per fold, or the process of g if that has not learnt from the rows. With calls, the graph keeps
// ballots, calls services and holds the election of g. Without calls, services and the election
// take no part.
func (g *Graph) HoldOut(ctx context.Context, rows *fitted.HeldOut, calls bool, start Launch) (held *Graph, done func(), err error) {
	processes := make([]any, len(g.stages))
	for i, s := range g.stages {
		switch {
		case s == nil || !s.Info.Fits:
		case i == g.elect:
			if calls {
				processes[i] = s.process
			}
		case rows.Of(s.knowledge) && s.learning(start).LeavesOut(rows):
			processes[i] = s.process
		}
	}
	return g.hold(ctx, g.pipeline, Options{Holdout: rows, Calls: calls, Ballots: calls, Strict: true}, processes, start)
}

// hold returns a graph for held-out rows. It uses the given processes of stages, and starts the
// missing processes.
func (g *Graph) hold(ctx context.Context, p *pipeline.Pipeline, o Options, processes []any, start Launch) (held *Graph, done func(), err error) {
	o.Refuses, o.Fitted, o.Scratch, o.Fitting = g.options.Refuses, g.options.Fitted, g.options.Scratch, g.options.Fitting
	held = New(p, o)
	held.knowledge, held.labels = g.knowledge, g.labels
	var mu sync.Mutex
	var own []io.Closer
	done = func() {
		for _, p := range own {
			_ = p.Close()
		}
		for _, remove := range held.folders {
			remove()
		}
	}
	err = held.Connect(ctx, processes, func(ctx context.Context, r LaunchRequest) (any, error) {
		r.HeldOut = true
		process, err := start(ctx, r)
		if c, ok := process.(io.Closer); ok {
			mu.Lock()
			defer mu.Unlock()
			own = append(own, c)
		}
		return process, err
	})
	if err != nil {
		done()
		return nil, nil, err
	}
	return held, done, nil
}

// heldBatch is how many held-out rows travel together.
const heldBatch = 64

// voted takes held-out rows through the graph, and returns the rows in order, with the votes that
// count for an election. It leaves out failed rows; if all rows fail, it returns an error.
func (g *Graph) voted(ctx context.Context, election *stage) (rows []sdk.TrainingRow, err error) {
	needs := append(slices.Clone(election.in.needs), election.index)
	stopped := g.pass(ctx, election, "fitting", func(rec *Record, samples []sdk.Sample) {
		if f := cmp.Or(rec.failure(needs), rec.missing(needs)); f != nil {
			err = f
			return
		}
		rows = append(rows, sdk.TrainingRow{ID: rec.id, Label: rec.Row.Label, Samples: samples, HeldOut: true})
	})
	if stopped == nil && len(rows) == 0 {
		return nil, err
	}
	return append(election.graph.WithoutExample(), rows...), stopped
}

// WithoutExample returns rows that tell the election which labels of its knowledge have no example. They
// come before the rows with votes.
func (g *Graph) WithoutExample() (rows []sdk.TrainingRow) {
	if g.elect < 0 || g.stages[g.elect].knowledge == nil {
		return nil
	}
	for _, label := range g.stages[g.elect].knowledge.WithoutExamples() {
		rows = append(rows, sdk.TrainingRow{Label: label})
	}
	return rows
}

// pass takes the held-out rows through the graph. It calls each with every row, in order, and the
// samples of the row's voters. Only the answers that count for an election are marked as accepted.
// An error is the context's error.
func (g *Graph) pass(ctx context.Context, election *stage, doing string, each func(*Record, []sdk.Sample)) error {
	items, size := g.options.Holdout.Items, heldBatch
	switch {
	case g.gathers:
		size = heldBatch * Window
	case g.options.Calls:
		size = 4 // small, because calls take long and progress should show
	}
	var done atomic.Int64
	for some := range slices.Chunk(items, heldBatch*Window) {
		records := make([]*Record, len(some))
		for i, row := range some {
			records[i] = g.NewRecord(row)
		}
		var group errgroup.Group
		for batch := range slices.Chunk(records, size) {
			group.Go(func() error {
				g.Run(ctx, batch)
				election.progress(progress.Step{Doing: doing, Unit: "row", Done: done.Add(int64(len(batch))), Total: int64(len(items))})
				return nil
			})
		}
		_ = group.Wait() // the functions return nil: every error belongs to a record
		if ctx.Err() != nil {
			return ctx.Err()
		}
		for _, rec := range records {
			samples := rec.samples(g.voters)
			if err := election.accept(ctx, rec, samples); err != nil {
				rec.fail(election, err)
			}
			each(rec, samples)
		}
	}
	return nil
}

// learning returns the Job by which a stage learns.
func (s *stage) learning(start Launch) fitted.Job {
	j := fitted.Job{
		Dir: s.graph.options.Fitted, Scratch: s.graph.options.Scratch, Stage: s.Stage, Knowledge: s.knowledge,

		Launch: func(ctx context.Context, dir string) (any, error) {
			return start(ctx, LaunchRequest{Stage: s.Stage, StateDir: dir})
		},
		Progress: s.progress,
	}
	if s.Info.FitReads.Has(sdk.ColumnSamples) {
		j.Rows = func(ctx context.Context) ([]sdk.TrainingRow, error) { return s.votes(ctx, start) }
		j.From = s.votesFrom(free)
	}
	return j
}

func (s *stage) progress(step progress.Step) {
	step.Name = s.String()
	s.graph.options.Fitting.Report(step)
}

// voted returns the number of held-out rows from whose votes an election learns. If enough rows remain, the number
// is so small that one fold has all of them, and voters learn only once more.
func (s *stage) voted() int {
	const enough, share = 500, 5
	_, _, rows := s.knowledge.Learnt()
	return min(fitted.Voted, max(rows/share, enough, s.rowsAsked()))
}

// votes returns rows of the knowledge with the votes of the voters above an election. Each row is
// held out, and no service is called.
func (s *stage) votes(ctx context.Context, start Launch) ([]sdk.TrainingRow, error) {
	if !slices.ContainsFunc(s.in.voters, func(v int) bool { return free(s.graph.stages[v].Stage) != nil }) {
		return nil, nil
	}
	rows, err := s.graph.Choose(ctx, s.voted())
	if err != nil || len(rows.Items) == 0 { // without rows, voters need not learn again
		return nil, err
	}
	held, done, err := s.graph.HoldOut(ctx, rows, false, start)
	if err != nil {
		return nil, err
	}
	defer done()
	return held.voted(ctx, s)
}

// Choose selects at most n rows to hold out of the election's knowledge.
func (g *Graph) Choose(ctx context.Context, n int) (*fitted.HeldOut, error) {
	if g.elect < 0 || g.stages[g.elect].knowledge == nil {
		return nil, errors.New("no election stands below a retrieve stage")
	}
	k := g.stages[g.elect].knowledge
	if !k.Filters() {
		return nil, fmt.Errorf("the store of knowledge %q does not filter, so no row can be kept out of what is found for it: give the election weights, or the knowledge another store", k.Report.Name)
	}
	centroids := slices.ContainsFunc(g.stages, func(s *stage) bool { return s != nil && s.Info.Reads.Has(sdk.ColumnPrototypes) })
	return fitted.HoldOut(ctx, k, n, centroids)
}

// votesFrom identifies everything that the votes for an election depend on: the voting stages, as
// changed by form, and which votes count.
func (s *stage) votesFrom(form func(*pipeline.Stage) *pipeline.Stage) string {
	p, fingerprints := *s.graph.pipeline, []string{}
	p.Stages = nil
	for _, n := range s.in.needs {
		above := s.graph.stages[n]
		if above == nil {
			continue
		}
		if runs := form(above.Stage); runs != nil {
			p.Stages = append(p.Stages, runs)
			fingerprints = append(fingerprints, above.fingerprint+" "+above.learnt)
			for _, f := range above.fallbacks {
				fingerprints = append(fingerprints, f.fingerprint+" "+f.learnt)
			}
		}
	}
	p.Stages = append(p.Stages, &pipeline.Stage{Block: s.Block, Name: s.Name, Enabled: true, Accept: s.Accept})
	return fmt.Sprint(pipeline.PartDigests(&p), strings.Join(fingerprints, "\n"))
}

// fold starts a process of a stage that learns for each fold of the held-out rows, fitted without
// that fold.
func (s *stage) fold(ctx context.Context, job fitted.Job) (err error) {
	held := s.graph.options.Holdout
	methods := make([]method, held.Folds)
	for i := range methods {
		process, remove, err := job.Once(ctx, held.Without(i, job.All(ctx)))
		if err != nil {
			return err
		}
		s.graph.folders = append(s.graph.folders, remove)
		if methods[i], err = s.methodOf(process); err != nil {
			return err
		}
	}
	s.method = func(ctx context.Context, handle string, records []*Record) error {
		failed := sdk.RowErrors{}
		for fold, method := range methods {
			var some []*Record
			var at []int
			for i, rec := range records {
				if held.Fold(rec.id) == fold {
					some, at = append(some, rec), append(at, i)
				}
			}
			if len(some) == 0 {
				continue
			}
			rows := sdk.RowErrors{}
			if err := method(ctx, handle, some); err != nil && !errors.As(err, &rows) {
				return err
			}
			for n, err := range rows {
				failed[at[n]] = err
			}
		}
		if len(failed) > 0 {
			return failed
		}
		return nil
	}
	return nil
}
