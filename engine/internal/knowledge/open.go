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
	"github.com/racflow/racflow/engine/internal/process/retry"
	"github.com/racflow/racflow/engine/internal/progress"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/sdk"
)

// attach opens a collection that another program maintains.
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

// from makes k serve an attached collection.
func (k *Knowledge) from(c *attached.Collection, store generation.Store, content string) {
	k.store, k.entries, k.content, k.Dimension = store, c.Name, content, c.Dimension
	k.Numbers = k.Dimension
	k.backing, k.attached = c, c
	k.all, k.drawn = &all{}, &all{}
}

// Attached reports whether another program maintains the collection. Entries, Rows and Labels then come from a sample
// of it.
func (k *Knowledge) Attached() bool { return k.attached != nil }

// Moved looks at an attached collection again, and reports whether to open it again: another collection has its name,
// or its number of entries has changed by more than a fifth.
func (k *Knowledge) Moved(ctx context.Context) (bool, error) {
	if k.attached == nil {
		return false, nil
	}
	return k.attached.Moved(ctx)
}

// CheckMode refuses a search that the knowledge does not support.
func (k *Knowledge) CheckMode(mode sdk.Mode) error {
	if k.attached == nil || k.attached.Lexical || mode != sdk.ModeLexical {
		return nil
	}
	return fmt.Errorf(`knowledge %q: collection %s cannot be searched by words alone: use mode = "dense", or name a field in the store's config by which its server searches words`, k.block.Name, k.entries)
}

// mode returns the mode to search in: dense in place of hybrid, if the knowledge does not support hybrid.
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
	Numbers   int         // nonzero numbers per vector: the dimension, or an eighth of it if a sample has no more
	Report    BuildReport // of the Open that made the knowledge
	// Decided has people's decisions about texts, if a source names them.
	Decided reviewed.Decisions
	// Described has the descriptions of labels. Renames has the labels that the knowledge renames or merges. Reopen
	// leaves both empty.
	Described map[string]sdk.Described
	Renames   source.Renames

	weight   float64 // number of rows that a description counts as in the centroid of its label
	block    *pipeline.Knowledge
	embedder generation.Embedder
	store    generation.Store
	entries  string // name of their collection
	base     string // name of the base generation of an edition
	content  string
	backing  backing
	attached *attached.Collection // the backing, if another program maintains the collection; else nil
	all      *all                 // all entries of the backing
	drawn    *all                 // entries of the backing's pages, from which random examples are drawn
	embeds   Meter
	searches Meter
	observe  progress.CallObserver // receives calls; may be nil
	pipeline string                // the pipeline that observe observes
}

// Options configure Open beside the block and its stages.
type Options struct {
	Stdin    io.Reader
	Progress progress.Func                // of each step ("enriching", "embedding")
	Waiting  func(name string, why error) // called once when another process is building the knowledge; may be nil
	Pending  *retry.Handles               // handles of results that come later; nil: such a result is an error
	Waits    *progress.WaitReporter       // receives what stages wait for; may be nil
	Vectors  cache.VectorOptions          // where vectors of earlier builds are stored
	Plan     bool                         // only report what would be done
	Estimate Forecasters                  // in a plan: forecasts of enrichers
	Samples  string                       // folder for samples of attached collections; empty: none is stored
	Refresh  bool                         // read such a sample again even if one is stored
	// Stands is the index version to search as it is; nil: Open updates one from the source.
	Stands *Stand
	// Edition searches a pinned snapshot that never changes (generation.Edition), for processes that search for a long
	// time.
	Edition bool
	// MergeLabels decides about labels, in built knowledge, that an earlier version of racflow distinguished: may they
	// become one? nil: they may not.
	MergeLabels func(question string) bool
}

// Open updates the store from the source and returns the knowledge, ready for searches. It opens an attached collection
// as it is. The report lists unusable rows. After an error there is nothing to search.
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
		MergeLabels: o.MergeLabels,
	}
	there := false // the edition exists, at least in part: a process that leaves it may be removing it
	if o.Edition {
		if err := job.Read(ctx); err != nil {
			return nil, fmt.Errorf("knowledge %q: %w", block.Name, err)
		}
		job.Edition, job.Origin.Base = true, name
		content := job.Source.Digest
		if len(job.Source.Respelt) > 0 { // an edition of an earlier version has these labels in the rows' spelling
			content += "\nrespelt"
		}
		if job.Collection, there, err = generation.Edition(ctx, store, name, block.Name, content); err != nil {
			return nil, fmt.Errorf("knowledge %q: %w", block.Name, err)
		}
	}
	if o.Plan {
		set.Enrichers = nil
	}
	job.Enrichers = newEnrichers(block, set.Enrichers, &job.Later).estimate(o.Estimate)
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
	decided, _ := reviewed.Read(block.Reviewed(), block.LabelForm()) // the build has reported any error
	k := &Knowledge{Labels: made.Labels, Report: made.Report, block: block, embedder: job.Embedder, base: job.Origin.Base}
	k.serving(store, job.Collection, made.Content, job.Embedder.Dimension())
	k.count(ctx, k.Report.Entries)
	if block.Described() != nil {
		table, err := generation.ReadTable(block)
		if err == nil && !o.Plan { // a plan has made no centroids
			err = generation.Scan(ctx, store, generation.Centroids(k.entries), sdk.Scan{Texts: true}, k.describe)
		}
		if err != nil {
			return nil, fmt.Errorf("knowledge %q: %w", block.Name, err)
		}
		k.Renames = table.Renames
		for i := range decided {
			decided[i].Label = k.Renames.In(block.LabelForm(), decided[i].Label)
		}
	}
	k.Decided = reviewed.Of(decided)
	return k, nil
}

// describe reads the description of a label from its centroid.
func (k *Knowledge) describe(centroid sdk.Entry) {
	if d, weight, ok := generation.Marked(centroid); ok {
		if k.Described == nil {
			k.Described = map[string]sdk.Described{}
		}
		k.Described[centroid.Label], k.weight = d, weight
	}
}

// Weighed reports whether an entry is the description of its label, and the number of rows that it counts as in the
// label's centroid. A row counts as one.
func (k *Knowledge) Weighed(e sdk.Entry) (weight float64, description bool) {
	if generation.IsDescription(e, k.Described) {
		return k.weight, true
	}
	return 1, false
}

// WithoutExamples returns the labels that have a description but no example, sorted.
func (k *Knowledge) WithoutExamples() (labels []string) {
	for label, d := range k.Described {
		if d.Alone {
			labels = append(labels, label)
		}
	}
	slices.Sort(labels)
	return labels
}

// serving makes k serve an index version, and returns k.
func (k *Knowledge) serving(store generation.Store, collection, content string, dimension int) *Knowledge {
	k.store, k.entries, k.content, k.Dimension = store, collection, content, dimension
	k.Numbers = dimension
	k.all = &all{}
	k.drawn = k.all
	k.backing = &built{store, collection, content, sdk.Schema{Dimension: dimension, Analyzer: k.block.Analyzer}, k.search}
	return k
}

// MaxNumbers limits the numbers in the vectors that a stage learns from: 256 MiB.
const MaxNumbers = 64 << 20

// count sets Numbers from the first rows, if there are so many rows that a stage could not learn from all of them.
func (k *Knowledge) count(ctx context.Context, rows int) {
	const share = 8
	if rows*k.Dimension <= MaxNumbers {
		return
	}
	for page, err := range k.backing.Pages(ctx, sdk.Scan{Vectors: true}) {
		numbers := 0
		for _, e := range page {
			for _, x := range e.Vector {
				if x != 0 {
					numbers++
				}
			}
		}
		if err == nil && len(page) > 0 && numbers*share <= len(page)*k.Dimension { // any error comes back when the rows are read
			k.Numbers /= share
		}
		return
	}
}

// Reopen returns an index version of a block's knowledge for reading, not for searching. content is the hash of what
// the version was made from (see Generation). Labels is nil: ReadLabels returns the labels. Reopen builds nothing. It
// fails if the version was removed, or was made from other content since, or if an attached collection's name now
// belongs to another collection. It cannot see changes by the owner of an attached collection. samples is the folder of
// samples.
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
	k := (&Knowledge{block: block}).serving(store, collection, content, have.Dimension)
	k.count(ctx, have.Entries)
	return k, nil
}

// find finds an index version that was made from the content of s.
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

// maxTries is how often in a row a build starts again for other reasons than the lock of another build.
const maxTries = 10

// retryAfter is how long a build waits before it tries again.
const retryAfter = 300 * time.Millisecond

// buildPatiently retries a build until the store allows it. If another process has built the same knowledge, little or
// nothing is left to do. Entries that a crashed store had committed still exist.
func buildPatiently(ctx context.Context, job *BuildJob, waiting func(string, error)) (BuildResult, error) {
	reported := waiting == nil
	for tries := 1; ; tries++ {
		made, err := build(ctx, job)
		busy := new(busyError)
		if err == nil {
			return made, nil
		}
		if !errors.As(err, &busy) || !busy.Locked && tries >= maxTries {
			return made, fmt.Errorf("knowledge %q: %w", job.Block.Name, err)
		}
		if busy.Locked { // another process is at work, for as long as it takes
			tries = 0
			if !reported {
				reported = true
				waiting(job.Block.Name, busy.Unwrap())
			}
		}
		select {
		case <-time.After(retryAfter):
		case <-ctx.Done():
			return made, ctx.Err()
		}
	}
}

// Hold keeps other processes from removing the searched edition for some minutes: call it again
// after generation.HoldEvery.
func (k *Knowledge) Hold(ctx context.Context, holder string) error {
	return k.backing.Hold(ctx, holder)
}

// Leave ends a Hold. With drop, it also removes an edition that nobody else holds, and returns true.
func (k *Knowledge) Leave(ctx context.Context, holder string, drop bool) (dropped bool, err error) {
	return k.backing.Leave(ctx, holder, drop)
}

// Filters reports whether the store applies each query's own filter.
func (k *Knowledge) Filters() bool { return k.block.Store.Info.Filters }

// Generation returns the name of the searched collection, and the hash of the content from which its entries were made.
// For an attached collection, the hash identifies the collection and its sample.
func (k *Knowledge) Generation() (collection, content string) { return k.entries, k.content }

// Base returns the name of the generation of which the searched one is an edition; empty: it is no edition.
func (k *Knowledge) Base() string { return k.base }

// Learnt describes the rows that stages learn from (see Rows): a name for the folder of learned state, an identity of
// the rows, and their number.
func (k *Knowledge) Learnt() (folder, content string, rows int) {
	if k.attached != nil {
		return k.attached.Sampled()
	}
	return k.entries, k.content, k.Report.Entries
}

// Entries calls f with the wanted parts of every wanted entry, in no particular order.
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

// Rows yields every entry for a stage to learn from: the text without additions, and the vector if the columns name it.
func (k *Knowledge) Rows(ctx context.Context, columns sdk.Columns) iter.Seq2[[]sdk.TrainingRow, error] {
	return func(yield func([]sdk.TrainingRow, error) bool) {
		want := sdk.Scan{Texts: columns.Has(sdk.ColumnText), Vectors: columns.Has(sdk.ColumnVector)}
		for page, err := range k.backing.Pages(ctx, want) {
			rows := make([]sdk.TrainingRow, len(page))
			for i, e := range page {
				_, description := k.Weighed(e)
				rows[i] = sdk.TrainingRow{ID: e.ID, Label: e.Label, Text: e.Text, Vector: e.Vector, Description: description}
			}
			if !yield(rows, err) {
				return
			}
		}
	}
}
