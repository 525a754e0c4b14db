package knowledge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge/attached"
	"github.com/racflow/racflow/engine/internal/knowledge/cache"
	"github.com/racflow/racflow/engine/internal/knowledge/generation"
	"github.com/racflow/racflow/engine/internal/knowledge/reviewed"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/retry"
	"github.com/racflow/racflow/engine/internal/show/terminal"
	"github.com/racflow/racflow/sdk"
)

// attach opens a collection that another program makes.
func attach(ctx context.Context, block *pipeline.Knowledge, starter generation.Starter, o Options) (*Knowledge, error) {
	c, err := attached.Open(ctx, block, starter, attached.Options{Dir: o.Samples, Refresh: o.Refresh, Plan: o.Plan, Progress: o.Progress, Waits: o.Waits})
	if err != nil {
		return nil, err
	}
	k := &Knowledge{Labels: c.Labels(), block: block, embedder: c.Embedder}
	k.Report = BuildReport{Name: block.Name, Entries: c.Entries, Unchanged: true, Embedder: block.Embed.Use, Store: block.Store.Use, Attached: c.Report()}
	k.from(c, c.Store, c.Identity())
	return k, nil
}

// from makes a knowledge that of an attached collection.
func (k *Knowledge) from(c *attached.Collection, store generation.Store, content string) {
	k.store, k.entries, k.content, k.Dimension = store, c.Name, content, c.Dimension
	k.backing, k.attached = c, c
	k.all, k.drawn = &all{}, &all{}
}

// Attached reports whether the knowledge is a collection that another program makes. Entries, Rows
// and Labels are then those of a sample of it.
func (k *Knowledge) Attached() bool { return k.attached != nil }

// Moved looks at an attached collection again, and reports whether it has to be opened anew:
// another one stands behind its name, or its number of entries has moved by more than a fifth.
func (k *Knowledge) Moved(ctx context.Context) (bool, error) {
	if k.attached == nil {
		return false, nil
	}
	return k.attached.Moved(ctx)
}

// CheckMode refuses a search that the knowledge cannot do.
func (k *Knowledge) CheckMode(mode sdk.Mode) error {
	if k.attached == nil || k.attached.Lexical || mode != sdk.ModeLexical {
		return nil
	}
	return fmt.Errorf(`knowledge %q: collection %s cannot be searched by words alone: use mode = "dense", or name a field in the store's config by which its server searches words`, k.block.Name, k.entries)
}

// mode is that of a search, where hybrid may be more than the knowledge can do.
func (k *Knowledge) mode(mode sdk.Mode) sdk.Mode {
	if k.attached != nil && !k.attached.Lexical && mode == sdk.ModeHybrid {
		return sdk.ModeDense
	}
	return mode
}

// Knowledge is a knowledge block that is ready to be searched.
type Knowledge struct {
	Labels    []string    // sorted
	Dimension int         // of the vectors
	Report    BuildReport // of the Open that made it
	// Decided is what people have decided about texts, where a source says so.
	Decided reviewed.Decisions

	block    *pipeline.Knowledge
	embedder generation.Embedder
	store    generation.Store
	entries  string // their collection
	content  string
	backing  backing
	attached *attached.Collection // the backing, where another program makes it; nil: racflow has built it
	all      *all                 // of the backing, whole
	drawn    *all                 // of its pages: what random examples are drawn from
	embeds   Meter
	searches Meter
	observe  outcome.Observer // hears of calls; nil: nobody listens
	pipeline string           // that is observed
}

// Options are what Open needs beside the block and its stages.
type Options struct {
	Stdin    io.Reader
	Progress terminal.ProgressFunc        // of what is being done ("enriching", "embedding")
	Waiting  func(name string, why error) // called once when another process is building it; may be nil
	Pending  *retry.Handles               // of results that come later; nil: those are errors
	Waits    *terminal.WaitReporter       // hears what stages wait for; may be nil
	Vectors  cache.VectorOptions          // of earlier builds
	Plan     bool                         // only report what would be done
	Foresee  Forecasters                  // of a plan: what enrichers would take
	Samples  string                       // folder for samples of attached collections; empty: none is kept
	Refresh  bool                         // read such a sample again, whatever is kept
	// Stands is the generation to search as it is; nil: it is brought up to date with the source.
	Stands *Stand
	// Edition searches a generation that nobody changes any more (generation.Edition): for who
	// searches it for long.
	Edition bool
}

// Open brings the store in step with the source and returns the knowledge,
// ready to be searched; an attached collection it opens as it is. Rows that cannot be used are in the report; an error
// means that there is nothing to search.
func Open(ctx context.Context, block *pipeline.Knowledge, starter generation.Starter, o Options) (*Knowledge, error) {
	if block.Attached() {
		return attach(ctx, block, starter, o)
	}
	if o.Stands != nil {
		return stand(ctx, block, starter, *o.Stands)
	}
	set, err := generation.Start(ctx, block, starter)
	if err != nil {
		return nil, err
	}
	store, err := starter.Store(ctx)
	if err != nil {
		return nil, err
	}
	name, err := generation.Choose(ctx, block, starter, store, &set)
	if err != nil {
		return nil, fmt.Errorf("knowledge %q: %w", block.Name, err)
	}
	job := &BuildJob{
		Block: block, Starter: starter, Store: store, Embedder: set.Embedder, Chunker: set.Chunker,
		Collection: name, Origin: generation.OriginOf(block, set),
		Stdin: o.Stdin, Progress: o.Progress, Plan: o.Plan, Later: generation.LaterResults{Handles: o.Pending, Waits: o.Waits}, Vectors: o.Vectors,
	}
	there := false // the edition, at least in part: who leaves it may be removing it
	if o.Edition {
		if err := job.Read(ctx); err != nil {
			return nil, fmt.Errorf("knowledge %q: %w", block.Name, err)
		}
		job.Edition, job.Origin.Base = true, name
		if job.Collection, there, err = generation.Edition(ctx, store, name, block.Name, job.Source.Digest); err != nil {
			return nil, fmt.Errorf("knowledge %q: %w", block.Name, err)
		}
	}
	if o.Plan {
		set.Enrichers = nil
	}
	job.Enrichers = NewEnrichers(block, set.Enrichers, &job.Later).Foresee(o.Foresee)
	made, err := buildPatiently(ctx, job, o.Waiting)
	switch {
	case err != nil && there:
		return nil, generation.Removed(ctx, store, job.Collection, err)
	case err != nil:
		return nil, err
	}
	if made.Completed {
		made.Report.Retired, made.Report.Kept = generation.Retire(ctx, block, store, job.Collection, job.Origin)
	}
	decided, _ := reviewed.Read(block.Reviewed()) // the build has reported what is wrong there
	k := &Knowledge{Labels: made.Labels, Report: made.Report, Decided: reviewed.Of(decided), block: block, embedder: job.Embedder}
	return k.of(store, job.Collection, made.Content, job.Embedder.Dimension()), nil
}

// of makes a knowledge that of a generation.
func (k *Knowledge) of(store generation.Store, collection, content string, dimension int) *Knowledge {
	k.store, k.entries, k.content, k.Dimension = store, collection, content, dimension
	k.all = &all{}
	k.drawn = k.all
	k.backing = &built{store, collection, content, sdk.Schema{Dimension: dimension, Analyzer: k.block.Analyzer}, k.search}
	return k
}

// Reopen returns a generation of a block's knowledge as it was when content was the hash of what it
// was made from (see Generation), to be read and not searched. Labels is nil: ReadLabels returns
// them. It builds nothing: a generation that is not there any more, or was made from
// something else since, is an error. So is an attached collection behind whose name another one stands;
// what its owner has changed in it, nobody knows. samples is the folder of samples.
func Reopen(ctx context.Context, block *pipeline.Knowledge, store generation.Store, samples, collection, content string) (*Knowledge, error) {
	if block.Attached() {
		c, err := attached.Reopen(ctx, block, store, samples, content)
		if err != nil {
			return nil, err
		}
		k := &Knowledge{block: block}
		k.from(c, store, content)
		return k, nil
	}
	have, _, err := find(ctx, store, Stand{collection, content})
	if err != nil {
		return nil, err
	}
	if _, err := store.Open(ctx, collection, sdk.Schema{Dimension: have.Dimension, Analyzer: block.Analyzer}); err != nil {
		return nil, err
	}
	return (&Knowledge{block: block}).of(store, collection, content, have.Dimension), nil
}

// find looks for a generation that was made from a certain content.
func find(ctx context.Context, store generation.Store, s Stand) (have sdk.Collection, note generation.Note, err error) {
	all, err := store.List(ctx)
	if err != nil {
		return have, note, err
	}
	at := slices.IndexFunc(all, func(c sdk.Collection) bool { return c.Name == s.Collection })
	if at < 0 {
		return have, note, fmt.Errorf("its generation %s was removed", s.Collection)
	}
	note, ok := generation.ReadNote(all[at].Note)
	if !ok || note.Content() != s.Content {
		return have, note, fmt.Errorf("its generation %s was made from other rows or documents since", s.Collection)
	}
	return all[at], note, nil
}

// maxTries is how often a build starts over that no other one kept out.
const maxTries = 10

// retryAfter is how long a build waits for another one before it looks again.
const retryAfter = 300 * time.Millisecond

// buildPatiently builds once the store lets it. Where another process builds the same
// knowledge, little or nothing is left to do once it is done; where the store's process
// ended, what it had committed is still there.
func buildPatiently(ctx context.Context, job *BuildJob, waiting func(string, error)) (BuildResult, error) {
	for try := 1; ; try++ {
		made, err := Build(ctx, job)
		busy := new(BusyError)
		if err == nil {
			return made, nil
		}
		if !errors.As(err, &busy) || !busy.Locked && !busy.Blamed && try >= maxTries {
			return made, fmt.Errorf("knowledge %q: %w", job.Block.Name, err)
		}
		if try == 1 && !busy.Blamed && waiting != nil {
			waiting(job.Block.Name, busy.Unwrap())
		}
		select {
		case <-time.After(retryAfter):
		case <-ctx.Done():
			return made, ctx.Err()
		}
	}
}

// Hold keeps others from removing the edition that is searched, for some minutes: call it again
// after generation.HoldEvery.
func (k *Knowledge) Hold(ctx context.Context, holder string) error {
	return k.backing.Hold(ctx, holder)
}

// Leave ends what Hold began. With drop, an edition that nobody else holds is removed: dropped.
func (k *Knowledge) Leave(ctx context.Context, holder string, drop bool) (dropped bool, err error) {
	return k.backing.Leave(ctx, holder, drop)
}

// Filters reports whether the store searches each query among the entries that the
// query's filter selects.
func (k *Knowledge) Filters() bool { return k.block.Store.Info.Filters }

// Generation names the collection that is searched, and the hash of what its
// entries were made from; of an attached one, what stands behind its name and in its sample.
func (k *Knowledge) Generation() (collection, content string) { return k.entries, k.content }

// Learnt says what stages learn from, which Rows yields: a name for a folder of what they have
// learnt, what identifies the rows, and how many there are.
func (k *Knowledge) Learnt() (folder, content string, rows int) {
	if k.attached != nil {
		return k.attached.Sampled()
	}
	return k.entries, k.content, k.Report.Entries
}

// Entries calls f with every entry that is wanted, in no particular order, and with
// those of its parts that are.
func (k *Knowledge) Entries(ctx context.Context, want sdk.Scan, f func(sdk.Entry)) error {
	return each(k.backing.Pages(ctx, want), f)
}

func each(pages iter.Seq2[[]sdk.Entry, error], f func(sdk.Entry)) error {
	for page, err := range pages {
		if err != nil {
			return err
		}
		for _, e := range page {
			f(e)
		}
	}
	return nil
}

// Rows yields every entry as a stage learns from it: with its text, without what was
// added to that, and its vector where the columns name them.
func (k *Knowledge) Rows(ctx context.Context, columns sdk.Columns) iter.Seq2[[]sdk.TrainingRow, error] {
	return func(yield func([]sdk.TrainingRow, error) bool) {
		want := sdk.Scan{Texts: columns.Has(sdk.ColumnText), Vectors: columns.Has(sdk.ColumnVector)}
		for page, err := range k.backing.Pages(ctx, want) {
			rows := make([]sdk.TrainingRow, len(page))
			for i, e := range page {
				rows[i] = sdk.TrainingRow{ID: e.ID, Label: e.Label, Text: e.Text, Vector: e.Vector}
			}
			if !yield(rows, err) {
				return
			}
		}
	}
}
