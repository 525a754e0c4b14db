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
	"github.com/racflow/racflow/engine/internal/show/terminal"
	"github.com/racflow/racflow/sdk"
)

// This file brings a generation in step with its source.
//
// The units of the source are compared with what the store holds, by id and content
// hash, and only what differs is redone: an unchanged file is only read for its digest,
// a changed row is embedded again, a removed row disappears. All changes of one build
// become visible in one commit, but for a first build, which is committed now and then
// between documents, to resume after a kill.
//
//	generation.ReadSource -> compare     here
//	  -> chunk -> enrich -> batches      build_batch.go, enrich.go
//	  -> embed -> put -> commit          build_put.go
//	     -> label centroids
//
// An embedder that has to learn reads all entries first, so that they are cut
// and enriched twice. What services answered is cached, and what failed is remembered:
// a build asks about no passage a second time but for the retries. Texts are forgotten
// once they are stored: no more of them are held than the batches under way have.
//
// A row that ends the process of a store, embedder or chunker, or that hangs, is left out
// alone; one that does so to an enricher is kept without the addition. Its document
// gets a hash that no content has, so that the next build does that document again.
// Where a stage answers nothing of a batch, nor what any stage can answer, no row is to
// blame: the build ends, and what the store holds stays. What an ended first build had
// completed is committed. A process of a store takes with it what was not committed: the
// rows to blame are found by putting them into a collection that is never committed
// (build_batch.go), and the build begins again without them.
//
// A plan does the same without calling a service and without writing; it counts what
// would be done and asked.

// BuildJob is what is built, and with what. What a try leaves in it serves the next one.
type BuildJob struct {
	Block      *pipeline.Knowledge
	Starter    generation.Starter
	Store      generation.Store
	Embedder   generation.Embedder // a build that finds or makes a state replaces it
	Chunker    generation.Chunker  // nil: a row or document is one entry
	Enrichers  Enrichers
	Collection string             // of the entries
	Origin     generation.Origin  // of what is made
	Source     *generation.Source // nil: not read yet
	Edition    bool               // it is one: once it is complete, nothing of it changes any more
	Stdin      io.Reader
	Progress   terminal.ProgressFunc
	Plan       bool // only report what would be done
	Later      generation.LaterResults
	Vectors    cache.VectorOptions // of earlier builds

	unstorable map[string]error // entries that end the store's process, by id
	learnt     []byte           // by the embedder in an earlier try, which nobody may have noted
}

// BuildResult is what a build made.
type BuildResult struct {
	Report    BuildReport
	Labels    []string // sorted
	Content   string   // hash of what the entries were made from
	Completed bool     // this build is the one that completed the generation
}

// builder is one try of a job.
type builder struct {
	*BuildJob
	BuildResult
	note    generation.Note
	embeds  generation.Caller
	chunks  generation.Caller
	cutting map[string]error // why the chunker failed on units, by id: it is not asked again
	vectors *cache.Vectors   // nil: none are kept
	looked  bool             // for those
	pace    pace             // of the embedder
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

// Build tries once. Where it fails with a BusyError, another try may succeed.
func Build(ctx context.Context, job *BuildJob) (BuildResult, error) {
	b := newBuilder(job)
	err := b.build(ctx)
	b.vectors.Close()
	if err != nil {
		return BuildResult{}, err
	}
	b.Content = b.note.Content()
	return b.BuildResult, nil
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
		if b.note.Resolved != nil { // by a process that took over from an earlier try, perhaps
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
	if b.note.Complete && digest != "" && digest == b.note.Source && (b.Edition || b.note.Invalid+b.note.Unenriched == 0) {
		b.Report.Unchanged, b.Report.Documents = true, b.note.Documents
		if b.Edition {
			b.Report.Invalid, b.Report.InvalidCount = slices.Clone(b.Source.Invalid), b.note.Invalid
		}
		if err := b.noteResolved(ctx); err != nil {
			return err
		}
	} else if labels, err = b.update(ctx, have); err != nil {
		return err
	}
	b.Report.Entries = have.Entries + b.Report.Added - b.Report.Removed
	if b.Plan {
		return nil
	}
	return b.buildCentroids(ctx, labels, before)
}

// update brings the store up to date with the source, and returns the labels of what differed.
func (b *builder) update(ctx context.Context, have sdk.Collection) (labels map[string]bool, err error) {
	if err := b.Read(ctx); err != nil {
		return nil, err
	}
	b.Report.Invalid, b.Report.InvalidCount = slices.Clone(b.Source.Invalid), b.Source.Count
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
	diff := stock.Compare(b.Source.Units, b.contentHash, refit)
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
	b.Report.Documents = w.documentCount()
	if b.Plan {
		b.Report.Asks = b.Enrichers.Asks()
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

// begin keeps other processes from writing, and lets the embedder learn where it has
// to. A fresh generation gets a note first, so that it is listed as incomplete however
// its first build ends.
func (b *builder) begin(ctx context.Context, fresh, refit bool) error {
	if fresh {
		b.note.Source = b.Source.Digest
		b.note.Describe(b.Origin)
		if err := b.commit(ctx); err != nil {
			return err
		}
	}
	if err := written("lock", b.Store.Delete(ctx, b.Collection, nil)); err != nil || !refit {
		return err
	}
	return b.fit(ctx)
}

// noteResolved adds the embedder's choice to the note of a generation that was built before
// there was one: whoever opens the generation as it stands knows no more than the note.
func (b *builder) noteResolved(ctx context.Context) error {
	if b.Plan || b.Origin.Resolved == nil || b.note.Resolved != nil {
		return nil
	}
	if err := written("lock", b.Store.Delete(ctx, b.Collection, nil)); err != nil {
		return err
	}
	b.note.Resolved = b.Origin.Resolved
	return b.commit(ctx)
}

// Read reads the source, unless that was done before: standard input cannot be read again.
func (j *BuildJob) Read(ctx context.Context) (err error) {
	if j.Source == nil {
		j.Source, err = generation.ReadSource(ctx, j.Block, j.Stdin)
	}
	return err
}

// digest identifies what the source holds; empty where that is not known before it is
// read.
func (b *builder) digest(ctx context.Context) (string, error) {
	if b.Block.Documents() == nil && !b.Edition {
		return generation.Digest(b.Block)
	}
	if err := b.Read(ctx); err != nil {
		return "", err
	}
	return b.Source.Digest, nil
}

// checkEdition refuses to complete an edition that was made from something else than its name says: its
// source has changed meanwhile.
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

// contentHash is the hash of a unit that its entries get. It depends on what the
// embedder was fitted to, so that vectors of different fits never pass for each
// other, whenever a build was cut off.
func (b *builder) contentHash(hash []byte) []byte {
	if b.note.State == nil {
		return hash
	}
	fitted := sha256.Sum256(b.note.State)
	sum := sha256.Sum256(append(fitted[:], hash...))
	return sum[:generation.HashBytes]
}

func (b *builder) commit(ctx context.Context) error {
	b.note.Changed = generation.Now()
	n, err := json.Marshal(b.note)
	if err != nil {
		return err
	}
	return written("commit", b.Store.Commit(ctx, b.Collection, n))
}

// BusyError says that the store cannot be written to at the moment.
type BusyError struct {
	err    error
	Locked bool // by another process, which it names
	Blamed bool // entries that end its process, which the next try leaves out
}

func (e *BusyError) Error() string { return e.err.Error() }

func (e *BusyError) Unwrap() error { return e.err }

// written wraps the error of a write to the store.
func written(what string, err error) error {
	if err == nil {
		return nil
	}
	if coded := new(sdk.Error); errors.As(err, &coded) && coded.Code == sdk.CodeTransient {
		return &BusyError{err: err, Locked: coded.RetryAfter > 0}
	}
	return fmt.Errorf("%s: %w", what, err)
}

// measure says how far a walk through units is: in bytes where they are documents, one of
// which may be larger than all others together, and else in rows.
type measure struct {
	step  terminal.ProgressStep
	size  func(id string) int64 // of a unit
	ended int64                 // of the units that have ended
	at    string                // the unit whose entries came last
	open  int64                 // bytes of these
}

func (b *builder) measure(doing string, of []generation.Unit) *measure {
	m := &measure{step: terminal.ProgressStep{Doing: doing, Name: b.Block.Name, Unit: "row", Total: int64(len(of))}}
	if m.size = b.Source.Size; b.Block.Documents() == nil {
		m.size = func(string) int64 { return 1 }
		return m
	}
	m.step.Unit, m.step.Total = terminal.BytesUnit, 0
	for _, u := range of {
		m.step.Total += m.size(u.ID)
	}
	return m
}

// add counts entries that are done, and the units that have ended with them. A document
// counts as the bytes of its file, whatever part of them is text; one that has not ended, as
// those of its entries so far, but no more than that.
func (m *measure) add(entries []sdk.Entry, ended ...string) terminal.ProgressStep {
	for _, e := range entries {
		if id := generation.DocumentOf(e); id != m.at {
			m.at, m.open = id, 0
		}
		m.open += int64(len(e.Text))
	}
	for _, id := range ended {
		m.ended += m.size(id)
		if id == m.at {
			m.at, m.open = "", 0
		}
	}
	done := m.ended
	if m.step.Unit == terminal.BytesUnit {
		m.step.Passages += int64(len(entries))
		if m.at != "" {
			done += min(m.open, m.size(m.at))
		}
	}
	m.step.Done = max(m.step.Done, done)
	return m.step
}

// BuildReport says what a build found and did.
type BuildReport struct {
	Name                    string
	Documents               int // that the entries are made of; 0: they are rows
	Entries                 int
	Added, Changed, Removed int
	Reused                  int                     // of what was added and changed: with vectors that an earlier build made of the same texts
	Anew                    []string                // which plugins are others than before, so that all is made again
	Unchanged               bool                    // the source is as it was: no row was looked at
	Invalid                 []generation.InvalidRow // the first generation.MaxInvalid
	InvalidCount            int                     // of all of them
	Unenriched              int                     // passages that are kept without an addition that they should have
	FirstUnenriched         generation.InvalidRow
	Asks                    []Asks // of a plan: what services would be asked, at most
	Embedder, Store         string
	Retired                 []generation.Generation // removed: this build replaces them
	Kept                    []error                 // why others that it replaces could not be removed
	Attached                *attached.Report        // of a collection that another program makes: nothing was built; nil: it is none
}

// BuildTexts calls f with every text that the knowledge would embed if its store were
// empty, but for what services would add. Of the report only the source's share is
// filled in, and what enrichers would be asked.
func BuildTexts(ctx context.Context, block *pipeline.Knowledge, starter generation.Starter, foresee Forecasters, f func(text string)) (BuildReport, error) {
	set, err := generation.StartLocal(ctx, block, starter)
	if err != nil {
		return reportOf(block), err
	}
	b := newBuilder(&BuildJob{Block: block, Chunker: set.Chunker, Enrichers: NewEnrichers(block, set.Enrichers, nil).Foresee(foresee)})
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
	b.Report.Documents, b.Report.Asks = w.documentCount(), b.Enrichers.Asks()
	return b.Report, err
}
