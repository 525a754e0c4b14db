package knowledge

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge/attached"
	"github.com/racflow/racflow/engine/internal/knowledge/cache"
	"github.com/racflow/racflow/engine/internal/knowledge/generation"
	"github.com/racflow/racflow/engine/internal/progress"
	"github.com/racflow/racflow/engine/internal/source/document"
	"github.com/racflow/racflow/sdk"
)

// This file updates an index version from its source.
//
// A build compares the units of the source with the store's units by id and content hash, and processes only
// differences. It reads an unchanged file only for its digest, embeds a changed row again, and removes the entries of a
// removed row. One commit makes all changes of a build. The embedded store shows them together; Milvus shows them row
// by row. Only a first build also commits from time to time between documents, so that it can resume after a kill.
//
//	generation.ReadSource -> compare     here
//	  -> chunk -> enrich -> batches      build_batch.go, enrich.go
//	  -> embed -> put -> commit          build_put.go
//	     -> label centroids
//
// A learning embedder reads all entries first, so the build chunks and enriches them twice. The second time, the
// answers of services come from the cache, and failed passages are not asked about again. The build frees texts of
// documents once they are stored, so only batches in progress hold texts.
//
// A build skips each row that crashes or hangs an embedder or chunker. A row that does so to an enricher stays, without
// the addition. The build gives the row's document a hash that no content has, so that the next build tries the
// document again.
//
// If a stage answers neither a batch nor its probe, no row is the cause. Then the build ends, the store keeps its
// entries, and a first build commits what is complete. After a crash of a store, uncommitted entries are lost: the
// build starts again, and ends with the error if that does not help.
//
// A plan does the same without calling a service or writing. It counts the work and the questions.

// BuildJob says what to build, and with what. A try stores results in it for the next try.
type BuildJob struct {
	Block      *pipeline.Knowledge
	Starter    generation.Starter
	Store      generation.Store
	Embedder   generation.Embedder // replaced if a build finds or makes a fitted state
	Chunker    generation.Chunker  // nil: a row or document is one entry
	Enrichers  Enrichers
	Collection string             // name of the entries' collection
	Origin     generation.Origin  // noted with the generation
	Source     *generation.Source // nil: not read yet
	Edition    bool               // builds an edition: it never changes once it is complete
	Stdin      io.Reader
	Progress   progress.Func
	Plan       bool // only report what would be done
	Later      generation.LaterResults
	Vectors    cache.VectorOptions // where vectors of earlier builds are kept
	// MergeLabels decides whether labels of an earlier build may become one (Options.MergeLabels).
	MergeLabels func(question string) bool

	learnt  []byte       // state of an embedder that an earlier try fitted, which may be stored only here
	updated *BuildResult // result of an earlier try that stored all entries, but not the centroids
}

// BuildResult is the outcome of a build.
type BuildResult struct {
	Report    BuildReport
	Labels    []string // sorted
	Content   string   // hash of what the entries were made from
	Completed bool     // this build completed the generation
}

// builder makes one try of a job.
type builder struct {
	*BuildJob
	BuildResult
	note    generation.Note
	embeds  generation.Caller
	chunks  generation.Caller
	cutting map[string]error // why the chunker failed on units, by id; it does not get these units again
	vectors *cache.Vectors   // nil: none are kept
	looked  bool             // openVectors has run
	pace    pace             // of calls to the embedder
}

// probe is a text that every embedder and chunker can work on.
const probe = "a"

func newBuilder(job *BuildJob) *builder {
	b := &builder{
		BuildJob: job, BuildResult: BuildResult{Report: reportOf(job.Block)}, cutting: map[string]error{}, pace: pace{now: time.Now},
		embeds: generation.Caller{Stage: job.Block.Embed, Name: "embed." + job.Block.Name, Waits: job.Later.Waits},
		chunks: generation.Caller{Stage: job.Block.Chunk, Name: "chunk." + job.Block.Name, Waits: job.Later.Waits},
	}
	b.embeds.Probe = func(ctx context.Context) error {
		_, err := b.Embedder.Embed(ctx, sdk.RolePassage, []string{probe})
		return err
	}
	b.chunks.Probe = func(ctx context.Context) error {
		_, err := b.Chunker.Chunk(ctx, []sdk.Document{{ID: probe, Text: probe}})
		return err
	}
	return b
}

func reportOf(block *pipeline.Knowledge) BuildReport {
	return BuildReport{Name: block.Name, Embedder: block.Embed.Use, Store: block.Store.Use}
}

// build tries once. After a busyError, another try may succeed.
func build(ctx context.Context, job *BuildJob) (BuildResult, error) {
	b := newBuilder(job)
	err := b.build(ctx)
	b.vectors.Close()
	if err != nil {
		return BuildResult{}, err
	}
	made := b.BuildResult
	if job.updated != nil && b.Report.changes() == 0 {
		made = *job.updated
	}
	made.Labels, made.Content = b.Labels, b.note.Content()
	return made, nil
}

func (b *builder) build(ctx context.Context) error {
	have, err := b.Store.Open(ctx, b.Collection, sdk.Schema{Dimension: b.Embedder.Dimension(), Analyzer: b.Block.Analyzer})
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	if len(have.Note) > 0 {
		n, ours := generation.ReadNote(have.Note)
		if !ours {
			return fmt.Errorf("collection %s was not made by racflow: its note is not readable; keep the knowledge in another place", b.Collection)
		}
		b.note = n
	}
	before := b.note.Source
	if b.note.State != nil {
		if b.note.Resolved != nil { // perhaps by a process that took over from an earlier try
			b.Origin.Resolved = b.note.Resolved
		}
		if err = b.use(ctx, b.note.State); err != nil {
			return err
		}
	} else if b.learnt != nil && !b.Embedder.Fits() {
		b.note.State = b.learnt
	}
	digest, err := b.digest(ctx)
	if err != nil {
		return err
	}
	if !b.note.Complete {
		b.Report.Anew = generation.WhyAnew(ctx, b.Block, b.Store, b.Collection, b.Origin)
	}
	var labels map[string]bool
	outdated := false
	if b.note.Complete && !b.Plan {
		if outdated, err = b.outdated(ctx); err != nil {
			return err
		}
	}
	if b.note.Complete && !outdated && digest != "" && digest == b.note.Source && (b.Edition || b.note.Invalid+b.note.Unenriched == 0) {
		b.Report.Unchanged, b.Report.Documents = true, b.note.Documents
		if b.Edition {
			b.Report.Invalid, b.Report.InvalidCount = slices.Clone(b.Source.Invalid), b.note.Invalid
		}
	} else if labels, err = b.update(ctx, have); err != nil {
		return err
	}
	b.Report.Entries = have.Entries + b.Report.Added - b.Report.Removed
	if b.Plan {
		return nil
	}
	err = b.buildCentroids(ctx, labels, before)
	if err != nil && b.Report.changes() > 0 {
		b.updated = &b.BuildResult
	}
	return err
}

// update updates the store from the source, and returns the labels of all differences.
func (b *builder) update(ctx context.Context, have sdk.Collection) (labels map[string]bool, err error) {
	if err := b.Read(ctx); err != nil {
		return nil, err
	}
	b.Report.Invalid, b.Report.InvalidCount, b.Report.Respelt = slices.Clone(b.Source.Invalid), b.Source.Count, b.Source.Respelt
	stock, err := generation.TakeStock(ctx, b.Store, b.Collection, b.Chunker != nil)
	if err != nil {
		return nil, err
	}
	refit := b.mustFit(len(b.Source.Units))
	if !b.Plan {
		if err := b.begin(ctx, len(have.Note) == 0, refit); err != nil {
			return nil, err
		}
	}
	diff := stock.Compare(b.Source.Units, b.contentHash(), refit)
	first := !b.note.Complete
	if !b.Plan {
		b.note.Source, b.note.Complete, b.note.Invalid = b.Source.Digest, false, b.Source.Count
		b.note.Describe(b.Origin)
	}
	w := &walk{builder: b}
	if len(b.Enrichers) > 0 && !refit && !b.Plan {
		w.doing = "enriching and embedding"
	}
	gone, err := w.put(ctx, stock, diff.Todo, first)
	if err != nil {
		return nil, err
	}
	gone = append(gone, diff.Gone...)
	b.Report.Removed += len(gone)
	stale, err := w.leaveOut(stock, have.Entries)
	if err != nil {
		return nil, err
	}
	b.Report.Documents, b.Report.Unread = w.documentCount(), b.Source.Unread()
	if b.Plan {
		b.Report.Asks = b.Enrichers.asks()
		return diff.Labels, nil
	}
	if err := b.checkEdition(ctx); err != nil {
		return nil, err
	}
	slices.Sort(gone)
	if err := written("delete", b.Store.Delete(ctx, b.Collection, append(gone, stale...))); err != nil {
		return nil, err
	}
	b.note.Complete, b.note.Documents, b.note.Unenriched = true, b.Report.Documents, b.Report.Unenriched
	if first {
		b.note.Built = generation.Now()
	}
	b.Completed = first
	if err := b.commit(ctx); err != nil {
		return nil, err
	}
	return diff.Labels, b.Later.Settle()
}

// begin locks the collection against other processes, and fits the embedder if refit is set. A fresh index version
// first gets a note, so that lists show it as incomplete however its first build ends.
func (b *builder) begin(ctx context.Context, fresh, refit bool) error {
	if fresh {
		b.note.Source = b.Source.Digest
		b.note.Describe(b.Origin)
		if err := b.commit(ctx); err != nil {
			return err
		}
	}
	if err := b.lock(ctx); err != nil || !refit {
		return err
	}
	return b.fit(ctx)
}

// lock keeps other processes from writing to the collection until the next commit.
func (b *builder) lock(ctx context.Context) error {
	return written("lock", b.Store.Delete(ctx, b.Collection, nil))
}

// Read reads the source once: standard input cannot be read again.
func (j *BuildJob) Read(ctx context.Context) (err error) {
	if j.Source == nil {
		j.Source, err = generation.ReadSource(ctx, j.Block, j.Stdin)
	}
	return err
}

// digest identifies the content of the source; empty: it is unknown until the source is read.
func (b *builder) digest(ctx context.Context) (string, error) {
	if b.Block.Documents() == nil && !b.Edition {
		return generation.Digest(b.Block)
	}
	if err := b.Read(ctx); err != nil {
		return "", err
	}
	return b.Source.Digest, nil
}

// checkEdition refuses to complete an edition if its source has changed during the build. Otherwise the edition's name
// would identify other content.
func (b *builder) checkEdition(ctx context.Context) error {
	if !b.Edition || b.Block.Stdin() {
		return nil
	}
	now, err := generation.ReadSource(ctx, b.Block, b.Stdin)
	if err == nil && now.Digest != b.Source.Digest {
		err = &generation.SourceError{Range: b.Block.Main().Range, Err: errors.New("it has changed while the knowledge was built from it: it is read again once it stays as it is")}
	}
	return err
}

// contentHash returns a function that turns a unit's hash into the hash of its entries. That hash depends on the
// embedder's fitted state, so that vectors of different fits never mix, even after an interrupted build.
func (b *builder) contentHash() func([]byte) []byte {
	if b.note.State == nil {
		return func(hash []byte) []byte { return hash }
	}
	fitted := sha256.Sum256(b.note.State)
	return func(hash []byte) []byte {
		sum := sha256.Sum256(append(fitted[:], hash...))
		return sum[:generation.HashBytes]
	}
}

func (b *builder) commit(ctx context.Context) error {
	b.note.Changed = generation.Now()
	if b.Source != nil {
		b.note.Unread = b.Source.UnreadAfter(b.note.Unread)
	}
	n, err := json.Marshal(b.note)
	if err != nil {
		return err
	}
	return written("commit", b.Store.Commit(ctx, b.Collection, n))
}

// busyError says that the store accepts no writes at the moment.
type busyError struct {
	err    error
	Locked bool // another process, which the error names, holds the lock
}

func (e *busyError) Error() string { return e.err.Error() }

func (e *busyError) Unwrap() error { return e.err }

// written wraps the error of a write to the store.
func written(what string, err error) error {
	if err == nil {
		return nil
	}
	if coded := new(sdk.Error); errors.As(err, &coded) && coded.Code == sdk.CodeTransient {
		return &busyError{err: err, Locked: coded.RetryAfter > 0}
	}
	return fmt.Errorf("%s: %w", what, err)
}

// measure tracks the progress of a walk through units. It counts rows or, for documents, bytes of their files, since
// one document may be larger than all others together.
type measure struct {
	step progress.Step
	size func(id string) int64 // size of a unit
}

func (b *builder) measure(doing string, of []generation.Unit) *measure {
	m := &measure{step: progress.Step{Doing: doing, Name: b.Block.Name, Unit: "row", Total: int64(len(of))}}
	if m.size = b.Source.Size; b.Block.Documents() == nil {
		m.size = func(string) int64 { return 1 }
		return m
	}
	m.step.Unit, m.step.Total = progress.BytesUnit, 0
	for _, u := range of {
		m.step.Total += m.size(u.ID)
	}
	return m
}

// add counts finished entries and units.
func (m *measure) add(entries int, ended ...string) progress.Step {
	for _, id := range ended {
		m.step.Done += m.size(id)
	}
	if m.step.Unit == progress.BytesUnit {
		m.step.Passages += int64(entries)
	}
	return m.step
}

// BuildReport describes what a build found and did.
type BuildReport struct {
	Name                    string
	Documents               int             // number of documents with entries; 0: the entries are rows
	Unread                  document.Unread // what this build did not read of the documents that it read
	Entries                 int
	Added, Changed, Removed int
	Reused                  int                     // entries in Added and Changed with vectors of earlier builds
	Anew                    []string                // plugins that differ from before, so that everything is rebuilt
	Unchanged               bool                    // the source has not changed: the build compared no row
	Invalid                 []generation.InvalidRow // the first generation.MaxInvalid invalid rows
	InvalidCount            int                     // number of all invalid rows
	Respelt                 []string                // notes on labels that are read in another spelling
	Unenriched              int                     // passages that are kept although an addition is missing
	FirstUnenriched         generation.InvalidRow
	Asks                    []Asks // in a plan: the most that services would be asked
	Embedder, Store         string
	Retired                 []generation.Generation // replaced index versions that this build removed
	Kept                    []error                 // why it could not remove other replaced versions
	Attached                *attached.Report        // set for a collection of another program: nothing was built
}

func (r *BuildReport) changes() int { return r.Added + r.Changed + r.Removed }

// BuildTexts calls f with every text that the knowledge would embed if its store were empty, without additions of
// services. The report has only the source's part, and the questions to enrichers.
func BuildTexts(ctx context.Context, block *pipeline.Knowledge, starter generation.Starter, estimate Forecasters, f func(text string)) (BuildReport, error) {
	set, err := generation.StartLocal(ctx, block, starter)
	if err != nil {
		return reportOf(block), err
	}
	b := newBuilder(&BuildJob{Block: block, Chunker: set.Chunker, Enrichers: newEnrichers(block, set.Enrichers, nil).estimate(estimate)})
	if err := b.Read(ctx); err != nil {
		return b.Report, err
	}
	w := &walk{builder: b}
	err = w.batches(ctx, b.Source.Units, embedBatch, func(m batch) error {
		for _, text := range m.texts() {
			f(text)
		}
		return nil
	})
	b.Report.Documents, b.Report.Asks = w.documentCount(), b.Enrichers.asks()
	return b.Report, err
}
