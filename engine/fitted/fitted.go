package fitted

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/racflow/racflow/engine/identity"
	"github.com/racflow/racflow/engine/knowledge"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/private"
	"github.com/racflow/racflow/engine/progress"
	"github.com/racflow/racflow/engine/retry"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// Job says which stage learns, and from what.
type Job struct {
	Dir string // of all generations: STATE/fitted
	// Scratch makes a folder that what is learnt goes to where Dir cannot be written; nil: that is an error.
	Scratch   func() (string, error)
	Stage     *pipeline.Stage
	Knowledge *knowledge.Knowledge
	// Rows are what the stage learns from; nil: the rows of the knowledge.
	Rows func(context.Context) ([]sdk.TrainingRow, error)
	From string // what Rows depend on beside the entries of the knowledge; empty: nothing
	// Launch starts the stage with a state_dir; empty: the one of a stage that
	// learns nothing.
	Launch   func(ctx context.Context, stateDir string) (any, error)
	Progress progress.Func // of rows that are read ("fitting"), then of what is made of them ("learning")
}

// fitter is a running stage.
type fitter interface {
	sdk.Fitter
	identity.Process
	Fits() bool
}

// Start starts the stage. Where it is a Fitter and has not learnt from these rows, it
// does so first. learnt names what it has learnt; empty: nothing.
func Start(ctx context.Context, j Job) (process any, learnt string, err error) {
	folder, content, rows := j.Knowledge.Learnt()
	dir := filepath.Join(j.Dir, folder)
	if err := private.MakeBelow(filepath.Dir(j.Dir), dir); err != nil && !private.ReadOnly(err) {
		return nil, "", j.failed(err)
	}
	if n := j.bound(); n < rows && j.Rows == nil { // else what was learnt from all rows stands
		j.From += fmt.Sprint(" sample ", n)
	}
	content = digest(content, rows, j.From)
	if process, learnt := j.again(ctx, dir, content); process != nil {
		return process, learnt, nil
	}
	dir, fresh, err := j.fresh(dir)
	if err != nil {
		return nil, "", j.failed(err)
	}
	defer os.RemoveAll(fresh) //nolint:errcheck // sweep removes it later
	process, err = j.Launch(ctx, fresh)
	if err != nil {
		return nil, "", err
	}
	f, ok := process.(fitter)
	if !ok { // it stands in for the stage
		return process, "", nil
	}
	whole := ""
	if f.Fits() {
		learnt = j.name(f, content)
		whole = filepath.Join(dir, learnt)
		if _, missing := os.Stat(whole); missing != nil {
			err = j.learn(ctx, f)
		}
	}
	end(process) // its folder is about to get another name, or to go
	if err == nil && whole != "" {
		err = publish(fresh, whole)
	}
	if err != nil {
		return nil, "", j.failed(err)
	}
	process, err = j.Launch(ctx, whole)
	return process, learnt, err
}

// fresh makes a folder in dir, or in one that stands in for it.
func (j Job) fresh(dir string) (in, fresh string, err error) {
	if err = private.MakeBelow(filepath.Dir(j.Dir), dir); err == nil {
		fresh, err = os.MkdirTemp(dir, unfinished)
	}
	if private.ReadOnly(err) && j.Scratch != nil {
		if dir, err = j.Scratch(); err == nil {
			fresh, err = os.MkdirTemp(dir, unfinished)
		}
	}
	return dir, fresh, err
}

// name is that of the folder of what a stage learns.
func (j Job) name(f fitter, content string) string {
	return identity.Work(j.Stage)[:16] + "-" + identity.Stage(j.Stage, f)[:16] + "-" + content
}

// again starts a stage with what it has learnt before, without a process that is asked
// first what that is called; nil: it has not, or not as this stage.
func (j Job) again(ctx context.Context, dir, content string) (process any, learnt string) {
	kept, _ := filepath.Glob(filepath.Join(dir, identity.Work(j.Stage)[:16]+"-*-"+content)) // an error is of the pattern
	if len(kept) != 1 {
		return nil, ""
	}
	process, err := j.Launch(ctx, kept[0])
	if err != nil {
		return nil, "" // the one that is asked first says why
	}
	if f, ok := process.(fitter); ok && f.Fits() && j.name(f, content) == filepath.Base(kept[0]) {
		return process, filepath.Base(kept[0])
	}
	end(process)
	return nil, ""
}

func end(process any) {
	if c, ok := process.(io.Closer); ok {
		_ = c.Close()
	}
}

func (j Job) failed(err error) error {
	return fmt.Errorf("%s.%s: learn from knowledge %q: %w", j.Stage.Block, j.Stage.Name, j.Knowledge.Report.Name, err)
}

func (j Job) learn(ctx context.Context, f fitter) error {
	if j.Rows == nil {
		return j.fit(ctx, f, j.All(ctx))
	}
	rows, err := j.Rows(ctx) // before the stage waits for them
	if err != nil {
		return err
	}
	return j.fit(ctx, f, func(yield func([]sdk.TrainingRow, error) bool) {
		for batch := range slices.Chunk(rows, batchSize) {
			if !yield(batch, nil) {
				return
			}
		}
	})
}

// batchSize is how many of Rows a stage gets at a time.
const batchSize = 64

// All are the rows of the knowledge, or a sample of them where there are too many.
func (j Job) All(ctx context.Context) iter.Seq2[[]sdk.TrainingRow, error] {
	return func(yield func([]sdk.TrainingRow, error) bool) {
		last, rows, err := j.draw(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		done := 0
		for batch, err := range j.Knowledge.Rows(ctx, j.Stage.Info.FitReads) {
			if last != nil {
				batch = slices.DeleteFunc(batch, func(r sdk.TrainingRow) bool { return support.StratifiedRank(r.ID) > last[r.Label] })
			}
			if !yield(batch, err) {
				return
			}
			done += len(batch)
			j.Progress.Report(progress.Step{Doing: "fitting", Unit: "row", Done: int64(done), Total: int64(rows)})
		}
	}
}

// Once starts the stage and lets it learn from rows that are given, for as long as its
// process lives; then remove removes what it has learnt.
func (j Job) Once(ctx context.Context, rows iter.Seq2[[]sdk.TrainingRow, error]) (process any, remove func(), err error) {
	folder, _, _ := j.Knowledge.Learnt()
	dir := filepath.Join(j.Dir, folder)
	if _, dir, err = j.fresh(dir); err != nil {
		return nil, nil, j.failed(err)
	}
	remove = func() { _ = os.RemoveAll(dir) } // sweep does it later
	process, err = j.Launch(ctx, dir)
	if f, ok := process.(fitter); err == nil && ok && f.Fits() {
		err = j.fit(ctx, f, rows)
	}
	if err != nil {
		remove()
		return nil, nil, j.failed(err)
	}
	return process, remove, nil
}

// fit gives the stage rows, again where its process ended meanwhile.
func (j Job) fit(ctx context.Context, f fitter, rows iter.Seq2[[]sdk.TrainingRow, error]) error {
	w := retry.Work{Retries: j.Stage.Retries, Call: func(ctx context.Context, _ []int) error {
		return j.watch(ctx, f, rows)
	}}
	return w.Do(ctx, 1)[0]
}

// watch gives the stage rows, and then reports every second for how long it learns.
func (j Job) watch(ctx context.Context, f fitter, rows iter.Seq2[[]sdk.TrainingRow, error]) error {
	begun, n := time.Now(), 0
	var reports sync.WaitGroup
	defer reports.Wait()
	ctx, learnt := context.WithCancel(ctx)
	defer learnt()
	return f.Fit(ctx, func(yield func([]sdk.TrainingRow, error) bool) {
		for batch, err := range rows {
			if !yield(batch, err) {
				return
			}
			n += len(batch)
		}
		reports.Go(func() {
			for second := time.Tick(time.Second); ; {
				j.Progress.Report(progress.Step{Doing: "learning", Unit: "row", Done: int64(n), Elapsed: time.Since(begun)})
				select {
				case <-ctx.Done():
					return
				case <-second:
				}
			}
		})
	})
}

// digest identifies the rows of a generation, and what was made of them. The number of
// entries differs where a stage refused rows of the same source.
func digest(content string, entries int, from string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d%s", content, entries, from))
	return hex.EncodeToString(sum[:8])
}
