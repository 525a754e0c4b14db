package fitted

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/process/retry"
	"github.com/racflow/racflow/engine/internal/progress"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// Job describes what a stage learns from.
type Job struct {
	Dir string // for all generations: STATE/fitted
	// Scratch makes a folder for the learnt files if Dir cannot be written; nil: that is an error.
	Scratch   func() (string, error)
	Stage     *pipeline.Stage
	Knowledge *knowledge.Knowledge
	// Rows returns the rows to learn from; nil: the rows of the knowledge.
	Rows func(context.Context) ([]sdk.TrainingRow, error)
	From string // identifies what Rows depend on besides the knowledge's entries; empty: nothing
	Asks bool   // Rows ask services: the learnt files stay as long as the generation
	// Launch starts the stage with a state_dir; empty: the stage learns nothing.
	Launch   func(ctx context.Context, stateDir string) (any, error)
	Progress progress.Func // of reading rows ("fitting"), then of learning from them ("learning")
}

// fitter is a running stage.
type fitter interface {
	sdk.Fitter
	pipeline.RunningStage
	Fits() bool
}

// Start starts the stage. If the stage is a Fitter and has not learnt from these rows, it learns
// first. learnt identifies what the stage has learnt; empty: nothing.
func Start(ctx context.Context, j Job) (process any, learnt string, err error) {
	dir, content := j.place()
	if err := disk.MakeBelow(filepath.Dir(j.Dir), dir); err != nil && !disk.ReadOnly(err) {
		return nil, "", j.failed(err)
	}
	if process, learnt := j.again(ctx, dir, content); process != nil {
		return process, learnt, nil
	}
	dir, fresh, err := j.fresh(dir)
	if err != nil {
		return nil, "", j.failed(err)
	}
	defer os.RemoveAll(fresh) //nolint:errcheck // if this fails, sweep removes it later
	process, err = j.Launch(ctx, fresh)
	if err != nil {
		return nil, "", err
	}
	f, ok := process.(fitter)
	if !ok { // another process replaces the stage
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
	end(process) // its folder is about to be renamed or removed
	if err == nil && whole != "" {
		err = j.publish(fresh, whole)
	}
	if err != nil {
		return nil, "", j.failed(err)
	}
	process, err = j.Launch(ctx, whole)
	return process, learnt, err
}

// Kept starts the stage with what it learnt from these rows earlier; nil: it has not learnt from
// them. An edition gets a copy of what was learnt from its generation.
func Kept(ctx context.Context, j Job) (process any, learnt string) {
	dir, content := j.place()
	from := j.kept(filepath.Join(j.Dir, j.Knowledge.Base()), content)
	if j.Knowledge.Base() != "" && len(from) == 1 && len(j.kept(dir, content)) == 0 {
		if _, fresh, err := j.fresh(dir); err == nil && os.CopyFS(fresh, os.DirFS(from[0])) == nil {
			_ = j.publish(fresh, filepath.Join(dir, filepath.Base(from[0]))) // on failure, the stage counts as not fitted there
		}
	}
	return j.again(ctx, dir, content)
}

// Is reports whether learnt, a value from Start, is what the stage learns from these rows.
func (j Job) Is(learnt string) bool {
	_, content := j.place()
	return strings.HasPrefix(learnt, j.work()+"-") && strings.HasSuffix(learnt, "-"+content)
}

// place returns the folder for what stages learn from the knowledge, and a digest of the rows.
func (j Job) place() (dir, content string) {
	folder, content, rows := j.Knowledge.Learnt()
	if j.samples() && j.Rows == nil { // only with a sample: what was learnt from all rows stays valid
		j.From += fmt.Sprint(" sample ", j.bound(), " without ", j.left())
	}
	return filepath.Join(j.Dir, folder), digest(content, rows, j.From)
}

// work identifies the stage's task in folder names.
func (j Job) work() string {
	if j.Asks { // files learnt with and without calls do not replace each other
		return pipeline.WorkDigest(j.Stage)[:16] + "c"
	}
	return pipeline.WorkDigest(j.Stage)[:16]
}

// kept returns the folders of what the stage learnt from rows, with any fingerprint.
func (j Job) kept(dir, content string) []string {
	all, _ := filepath.Glob(filepath.Join(dir, j.work()+"-*-"+content)) // the only error is a bad pattern
	return all
}

// fresh makes a folder in dir or, if that cannot be written, in a scratch folder.
func (j Job) fresh(dir string) (in, fresh string, err error) {
	if err = disk.MakeBelow(filepath.Dir(j.Dir), dir); err == nil {
		fresh, err = os.MkdirTemp(dir, unfinished)
	}
	if disk.ReadOnly(err) && j.Scratch != nil {
		if dir, err = j.Scratch(); err == nil {
			fresh, err = os.MkdirTemp(dir, unfinished)
		}
	}
	return dir, fresh, err
}

// name returns the name of the folder for what a stage learns.
func (j Job) name(f fitter, content string) string {
	return j.work() + "-" + pipeline.StageDigest(j.Stage, f)[:16] + "-" + content
}

// again starts a stage directly with what it learnt earlier, if the folder can be found without
// asking a process. nil: it has not learnt, or another version of the stage has.
func (j Job) again(ctx context.Context, dir, content string) (process any, learnt string) {
	kept := j.kept(dir, content)
	if len(kept) != 1 {
		return nil, ""
	}
	process, err := j.Launch(ctx, kept[0])
	if err != nil {
		return nil, "" // Start's own launch reports the error
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
	rows, err := j.Rows(ctx) // read before the stage waits for them
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

// batchSize is how many rows of Job.Rows a stage gets at a time.
const batchSize = 64

// All yields the rows of the knowledge, or a sample if there are too many rows.
func (j Job) All(ctx context.Context) iter.Seq2[[]sdk.TrainingRow, error] {
	return func(yield func([]sdk.TrainingRow, error) bool) {
		drawn, err := j.draw(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		done := 0
		for batch, err := range j.Knowledge.Rows(ctx, j.Stage.Info.FitReads) {
			batch = slices.DeleteFunc(batch, func(r sdk.TrainingRow) bool { return !drawn.has(&r) })
			if !yield(batch, err) {
				return
			}
			done += len(batch)
			j.Progress.Report(progress.Step{Doing: "fitting", Unit: "row", Done: int64(done), Total: int64(drawn.rows)})
		}
	}
}

// Once starts the stage and fits it on the given rows. After the process has ended, call remove to
// delete what it learnt.
func (j Job) Once(ctx context.Context, rows iter.Seq2[[]sdk.TrainingRow, error]) (process any, remove func(), err error) {
	folder, _, _ := j.Knowledge.Learnt()
	dir := filepath.Join(j.Dir, folder)
	if _, dir, err = j.fresh(dir); err != nil {
		return nil, nil, j.failed(err)
	}
	remove = func() { _ = os.RemoveAll(dir) } // if this fails, sweep removes it later
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

// fit sends rows to the stage, and sends them again if the stage's process ended meanwhile.
func (j Job) fit(ctx context.Context, f fitter, rows iter.Seq2[[]sdk.TrainingRow, error]) error {
	w := retry.Work{Retries: j.Stage.Retries, Call: func(ctx context.Context, _ []int) error {
		return f.Fit(ctx, func(yield func([]sdk.TrainingRow, error) bool) {
			n := 0
			for batch, err := range rows {
				if !yield(batch, err) {
					return
				}
				n += len(batch)
			}
			j.Progress.Report(progress.Step{Doing: "learning", Unit: "row", Done: int64(n)})
		})
	}}
	return w.Do(ctx, 1)[0]
}

// digest identifies the rows that a stage learns from. The number of entries differs if a stage
// refused rows of the same source.
func digest(content string, entries int, from string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d%s", content, entries, from))
	return hex.EncodeToString(sum[:8])
}

const (
	unfinished = "new-"         // prefix of folders that a stage still writes to
	settled    = 24 * time.Hour // how long superseded folders stay
)

// publish gives a folder its final name. If the name exists already, the existing folder stays:
// another process has made the same.
func (j Job) publish(fresh, whole string) error {
	if _, err := os.Stat(whole); err == nil {
		return nil
	}
	files := 0
	err := filepath.WalkDir(fresh, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() && !e.Type().IsRegular() {
			return err
		}
		if e.IsDir() {
			return support.SyncFolder(path)
		}
		files++
		return force(path)
	})
	if err != nil {
		return err
	}
	if files == 0 {
		return errors.New("the stage has written nothing into its state_dir while it was fitted")
	}
	if err := support.Rename(fresh, whole); err != nil {
		if _, missing := os.Stat(whole); missing != nil {
			return err
		}
		return nil
	}
	if !j.Asks { // files learnt by calls stay
		sweep(whole)
	}
	return support.SyncFolder(filepath.Dir(whole))
}

func force(path string) error {
	f, err := support.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// sweep removes folders that this folder replaces, and leftovers of killed processes.
func sweep(whole string) {
	dir, name := filepath.Split(whole)
	stage, _, _ := strings.Cut(name, "-")
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		old := e.Name() != name && (strings.HasPrefix(e.Name(), stage+"-") || strings.HasPrefix(e.Name(), unfinished))
		if info, err := e.Info(); old && err == nil && time.Since(info.ModTime()) > settled {
			_ = os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
}

// Remove removes everything that stages learnt from a generation.
func Remove(dir, generation string) error {
	return os.RemoveAll(filepath.Join(dir, generation))
}

// maxRows limits the rows that a stage learns from; if the stage reads vectors, knowledge.MaxNumbers
// does, too. From more rows, the stage learns from a sample stratified by label.
var maxRows = 1 << 16 // tests lower it

// bound returns the maximum number of rows that the stage learns from. Labels keep at least one row
// each, even if that exceeds the bound.
func (j Job) bound() int {
	_, _, n := j.Knowledge.Learnt()
	if wide := j.Knowledge.Numbers; wide > 0 && j.Stage.Info.FitReads.Has(sdk.ColumnVector) {
		n = min(n, knowledge.MaxNumbers/wide)
	}
	return min(n, maxRows)
}

// samples reports whether there are more rows than the stage learns from.
func (j Job) samples() bool {
	_, _, n := j.Knowledge.Learnt()
	return n > j.bound()
}

// LeavesOut reports whether the stage learns from a sample without the held-out rows.
func (j Job) LeavesOut(rows *HeldOut) bool { return j.left() > 0 && rows.most <= j.left() }

// left returns how many rows are left out of the sample because an election learns from votes on
// them. The stage can then vote on these rows without being fitted again, and the loss is small
// among so many rows.
func (j Job) left() int {
	if _, _, n := j.Knowledge.Learnt(); n-Voted >= j.bound() {
		return Voted
	}
	return 0
}

// sample selects the rows that a stage learns from.
type sample struct {
	last map[string]uint64 // the highest rank of each label; nil: all rows are in
	out  map[string]bool   // the ids of rows that are left out
	rows int
}

// has reports whether a row is in the sample.
func (s *sample) has(r *sdk.TrainingRow) bool {
	return s.last == nil || support.StratifiedRank(r.ID) <= s.last[r.Label] && !s.out[r.ID]
}

// draw draws a sample if there are too many rows. It reads only ids, labels and hashes, and keeps eight
// bytes for each row.
func (j Job) draw(ctx context.Context) (*sample, error) {
	_, _, n := j.Knowledge.Learnt()
	s := &sample{rows: n}
	if !j.samples() {
		return s, nil
	}
	s.last, s.out, s.rows = map[string]uint64{}, map[string]bool{}, 0
	if n := j.left(); n > 0 {
		held, err := newHeldOut(j.Knowledge, n).draw(ctx)
		if err != nil {
			return nil, err
		}
		for _, d := range held {
			s.out[d.id] = true
		}
	}
	ranks := map[string][]uint64{}
	err := j.Knowledge.Entries(ctx, sdk.Scan{}, func(e sdk.Entry) {
		if !s.out[e.ID] {
			ranks[e.Label] = append(ranks[e.Label], support.StratifiedRank(e.ID))
		}
	})
	var sizes []int
	for _, of := range ranks {
		sizes = append(sizes, len(of))
	}
	each := max(1, support.EachStratified(sizes, j.bound())) // every label keeps a row
	for label, of := range ranks {
		slices.Sort(of)
		of = of[:min(each, len(of))]
		s.last[label] = of[len(of)-1]
		s.rows += len(of)
	}
	return s, err
}
