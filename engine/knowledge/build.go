package knowledge

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/sdk"
)

// builder brings one store in step with its source.
type builder struct {
	*Knowledge
	stages  Stages
	options Options

	rows      *rows // of the source; nil: not read yet
	note      note
	previous  string            // note.Source before this build
	old       map[string]stored // what the store holds of units, by id; at last of the changed ones
	changed   map[string]bool   // entries of the store that get another content
	refused   refusals
	embeds    worker
	chunks    worker
	uncut     map[string]error // units that the chunker failed on, by id: where they come by again it is not asked
	unusable  map[string]error // units that turned out to be so when they were loaded, by id
	held      int              // entries before this build
	streaming string           // what is done to documents that stream on; empty: nothing that takes long
	fitted    bool             // by this build: what services add is there already
	fresh     bool             // nothing was ever committed
	completed bool             // this build is the one that completed the generation
}

func newBuilder(k *Knowledge, stages Stages, o Options, source *rows) *builder {
	return &builder{
		Knowledge: k, stages: stages, options: o, rows: source,
		embeds: worker{stage: k.block.Embed}, chunks: worker{stage: k.block.Chunk},
	}
}

func (b *builder) build(ctx context.Context) error {
	schema := sdk.Schema{Dimension: b.embedder.Dimension(), Analyzer: b.block.Analyzer}
	have, err := b.store.Open(ctx, b.main, schema)
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	if len(have.Note) > 0 {
		n, ours := readNote(have.Note)
		if !ours {
			return fmt.Errorf("collection %s was not made by racflow: its note is not readable; keep the knowledge in another place", b.main)
		}
		b.note = n
	}
	b.fresh, b.previous, b.held = len(have.Note) == 0, b.note.Source, have.Entries
	if b.note.State != nil {
		if b.embedder, err = b.stages.Embedder(ctx, b.note.State); err != nil {
			return err
		}
	}
	digest, err := b.digestOf(ctx)
	if err != nil {
		return &SourceError{b.block.Source.Range, err}
	}
	if !b.note.Complete {
		b.Report.Anew = b.whyAnew(ctx)
	}
	changed := map[string]bool{} // labels whose centroid must be made again
	if b.note.Complete && digest != "" && digest == b.note.Source && b.note.Invalid+b.note.Unenriched == 0 {
		b.Report.Unchanged, b.Report.Documents = true, b.note.Documents
	} else if err := b.update(ctx, changed); err != nil {
		return err
	}
	b.Report.Entries = have.Entries + b.Report.Added - b.Report.Removed
	if b.options.Plan {
		return nil
	}
	return b.buildCentroids(ctx, changed)
}

// update redoes what differs between source and store.
func (b *builder) update(ctx context.Context, changedLabels map[string]bool) error {
	if err := b.read(ctx); err != nil {
		return &SourceError{b.block.Source.Range, err}
	}
	b.Report.Invalid, b.Report.InvalidCount = slices.Clone(b.rows.faults), b.rows.count
	var err error
	if b.old, err = b.stored(ctx); err != nil {
		return err
	}
	refit := b.mustFit(len(b.rows.units))
	if !b.options.Plan {
		if err := b.begin(ctx); err != nil {
			return err
		}
		// Nothing is changed by this, but now no other process can write.
		if err := written("lock", b.store.Delete(ctx, b.main, nil)); err != nil {
			return err
		}
		if refit {
			if err := b.fit(ctx); err != nil {
				return err
			}
		}
	}
	todo, gone := b.differences(refit, changedLabels)
	first := !b.note.Complete
	if !b.options.Plan {
		b.note.Source, b.note.Complete, b.note.Invalid = b.rows.digest, false, b.rows.count
		b.describe()
	}
	surplus, err := b.put(ctx, todo, first)
	if err != nil {
		return err
	}
	gone = append(gone, surplus...)
	slices.Sort(gone)
	b.Report.Removed += len(gone)
	stale, err := b.leaveOut()
	if err != nil {
		return err
	}
	b.countDocuments()
	if b.options.Plan {
		b.countAsks()
		return nil
	}
	if err := written("delete", b.store.Delete(ctx, b.main, append(gone, stale...))); err != nil {
		return err
	}
	b.note.Complete, b.note.Documents, b.note.Unenriched = true, b.Report.Documents, b.Report.Unenriched
	if first {
		b.note.Built = now()
	}
	b.completed = first
	return b.commit(ctx)
}

// begin commits a note to a generation that has none, so that it is listed as
// incomplete however its first build ends.
func (b *builder) begin(ctx context.Context) error {
	if !b.fresh {
		return nil
	}
	b.note.Source = b.rows.digest
	b.describe()
	return b.commit(ctx)
}

// read reads the source, unless that is done: another try does not read standard
// input again.
func (b *builder) read(ctx context.Context) error {
	if b.rows != nil {
		return nil
	}
	r, err := readSource(ctx, b.block, b.options.Stdin)
	if err != nil {
		return err
	}
	if len(r.units) == 0 {
		err = fmt.Errorf("%s holds no usable row: below the header a row needs a text", b.block.Source.Path)
		if b.block.Source.Documents != nil {
			err = fmt.Errorf("%s holds no document: name a folder, a glob such as docs/**/*.md, or a file of text, Markdown, HTML, PDF or source code", b.block.Source.Path)
		}
		if len(r.faults) > 0 {
			err = fmt.Errorf("%w. The first error: %s", err, r.faults[0])
		}
		return err
	}
	b.rows = r
	return nil
}

// digestOf identifies what the source holds, empty where that is not known
// before it is read.
func (b *builder) digestOf(ctx context.Context) (string, error) {
	if b.block.Source.Documents == nil {
		return source.Digest(b.block.Source.Path)
	}
	if err := b.read(ctx); err != nil {
		return "", err
	}
	return b.rows.digest, nil
}

// stamp is the hash of a unit that its entries get. It depends on what the
// embedder was fitted to, so that vectors of different fits never pass for each
// other, whenever a build was cut off.
func (b *builder) stamp(hash []byte) []byte {
	if b.note.State == nil {
		return hash
	}
	fitted := sha256.Sum256(b.note.State)
	sum := sha256.Sum256(append(fitted[:], hash...))
	return sum[:hashBytes]
}

func (b *builder) commit(ctx context.Context) error {
	b.note.Changed = now()
	n, err := json.Marshal(b.note)
	if err != nil {
		return err
	}
	return written("commit", b.store.Commit(ctx, b.main, n))
}
