package stage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/fitted"
	"github.com/racflow/racflow/engine/holdout"
	"github.com/racflow/racflow/engine/identity"
	"github.com/racflow/racflow/engine/launch"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/progress"
	"github.com/racflow/racflow/sdk"
)

// maxVoted is on how many rows of a knowledge voters vote for an election to learn from.
// It has a weight for each voter, which more rows hardly make better; voters that learn
// are fitted to fewer folds for it.
const maxVoted = 1000

// learning is what a stage learns, and from what.
func (s *stage) learning(start launch.Func) fitted.Job {
	j := fitted.Job{
		Dir: s.graph.options.Fitted, Scratch: s.graph.options.Scratch, Stage: s.Stage, Knowledge: s.knowledge,

		Launch: func(ctx context.Context, dir string) (any, error) {
			return start(ctx, launch.Request{Stage: s.Stage, StateDir: dir})
		},
		Progress: s.progress,
	}
	if s.Info.FitReads.Has(sdk.ColumnSamples) {
		j.Rows = func(ctx context.Context) ([]sdk.TrainingRow, error) { return s.votes(ctx, start) }
		j.From = s.votesFrom()
	}
	return j
}

func (s *stage) progress(step progress.Step) {
	step.Name = s.String()
	s.graph.options.Fitting.Report(step)
}

// votes returns rows of the knowledge with the votes on them of the voters above an
// election. Each row was held out, and no service is asked.
func (s *stage) votes(ctx context.Context, start launch.Func) ([]sdk.TrainingRow, error) {
	if !slices.ContainsFunc(s.in.voters, func(v int) bool { return free(s.graph.stages[v].Stage) != nil }) {
		return nil, nil
	}
	rows, err := s.graph.Choose(ctx, maxVoted)
	if err != nil {
		return nil, err
	}
	held, done, err := s.graph.HoldOut(ctx, rows, false, start)
	if err != nil {
		return nil, err
	}
	defer done()
	return held.voted(ctx, s)
}

// Choose chooses at most n rows of the knowledge of the election to be held out of it.
func (g *Graph) Choose(ctx context.Context, n int) (*holdout.Rows, error) {
	if g.elect < 0 || g.stages[g.elect].knowledge == nil {
		return nil, errors.New("no election stands below a retrieve stage")
	}
	k := g.stages[g.elect].knowledge
	if !k.Filters() {
		return nil, fmt.Errorf("the store of knowledge %q does not filter, so no row can be kept out of what is found for it: give the election weights, or the knowledge another store", k.Report.Name)
	}
	centroids := slices.ContainsFunc(g.stages, func(s *stage) bool { return s != nil && s.Info.Reads.Has(sdk.ColumnPrototypes) })
	return holdout.Choose(ctx, k, n, centroids)
}

// votesFrom identifies what the votes depend on that an election learns from: the stages
// that give them, and which of them count.
func (s *stage) votesFrom() string {
	p, fingerprints := *s.graph.pipeline, []string{}
	p.Stages = nil
	for _, n := range s.in.needs {
		above := s.graph.stages[n]
		if above == nil {
			continue
		}
		if runs := free(above.Stage); runs != nil {
			p.Stages = append(p.Stages, runs)
			fingerprints = append(fingerprints, above.fingerprint+" "+above.learnt)
			for _, f := range above.fallbacks {
				fingerprints = append(fingerprints, f.fingerprint+" "+f.learnt)
			}
		}
	}
	p.Stages = append(p.Stages, &pipeline.Stage{Block: s.Block, Name: s.Name, Enabled: true, Accept: s.Accept})
	return fmt.Sprint(identity.Parts(&p), strings.Join(fingerprints, "\n"))
}

// fold gives a stage that learns a process for each fold of the rows that are held out,
// fitted without them.
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
	s.method = func(ctx context.Context, records []*Record) error {
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
			if err := method(ctx, some); err != nil && !errors.As(err, &rows) {
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
