package knowledge

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge/cache"
	"github.com/racflow/racflow/engine/internal/knowledge/generation"
	"github.com/racflow/racflow/sdk"
)

// buildCentroids computes the centroids of the given labels again. It computes all centroids if the stored ones do not
// belong to the source as it was before.
func (b *builder) buildCentroids(ctx context.Context, labels map[string]bool, before string) error {
	collection := generation.Centroids(b.Collection)
	have, err := b.Store.Open(ctx, collection, sdk.Schema{Dimension: b.Embedder.Dimension()})
	if err != nil {
		return fmt.Errorf("open centroids: %w", err)
	}
	known := map[string]bool{}
	if err := generation.Scan(ctx, b.Store, collection, sdk.Scan{}, func(e sdk.Entry) { known[e.Label] = true }); err != nil {
		return err
	}
	state := []byte(b.note.Source)
	labels = b.split(labels)
	if !bytes.Equal(have.Note, state) || len(labels) > 0 { // entries may change while the source does not
		all := string(have.Note) != before
		if b.Block.Described() != nil { // a label's description affects the centroids of other labels
			all = true
			if err := b.Read(ctx); err != nil {
				return err
			}
		}
		if err := b.replaceCentroids(ctx, labels, known, state, all); err != nil {
			return err
		}
	}
	b.Labels = slices.Sorted(maps.Keys(known))
	return nil
}

// outdated reports whether the store has labels as racflow 0.1 read them: with blanks and invisible characters at their
// ends, and not in NFC. If some of these labels would now become one label, and rows of the source still have them, a
// person must agree.
func (b *builder) outdated(ctx context.Context) (is bool, err error) {
	collection := generation.Centroids(b.Collection)
	if _, err := b.Store.Open(ctx, collection, sdk.Schema{Dimension: b.Embedder.Dimension()}); err != nil {
		return false, fmt.Errorf("open centroids: %w", err)
	}
	var labels []string
	if err := generation.Scan(ctx, b.Store, collection, sdk.Scan{}, func(e sdk.Entry) { labels = append(labels, e.Label) }); err != nil {
		return false, err
	}
	slices.Sort(labels)
	first, merged := map[string]string{}, ""
	for _, written := range labels {
		label := sdk.LabelForm{}.Canonical(written)
		is = is || label != written
		if other, ok := first[label]; ok && merged == "" {
			merged = fmt.Sprintf("%+q and %+q", other, written)
		}
		first[label] = written
	}
	if merged == "" {
		return is, nil
	}
	if err := b.Read(ctx); err != nil {
		return false, err
	}
	if len(b.Source.Respelt) == 0 { // somebody has corrected the rows
		return is, nil
	}
	question := fmt.Sprintf("labels that an earlier version of racflow told apart become one: %s. Blanks and invisible characters at the ends of labels count no more, nor does their Unicode form", merged)
	if b.MergeLabels == nil || !b.MergeLabels(fmt.Sprintf("knowledge %q: %s.", b.Block.Name, question)) {
		return false, &generation.SourceError{Range: b.Block.Main().Range, Err: fmt.Errorf("%s: nothing was changed. Give these rows other labels or, if one label is meant, set RACFLOW_MERGE_LABELS=1 once", question)}
	}
	return is, nil
}

// split returns the labels in label sets.
func (b *builder) split(sets map[string]bool) map[string]bool {
	all := map[string]bool{}
	for set := range sets {
		for _, label := range b.Block.LabelForm().Split(set) {
			all[label] = true
		}
	}
	return all
}

// replaceCentroids computes centroids again, and updates known, the labels with a centroid.
func (b *builder) replaceCentroids(ctx context.Context, labels, known map[string]bool, state []byte, all bool) error {
	s := sdk.Scan{Vectors: true}
	form := b.Block.LabelForm()
	if !all && !form.Many { // a store finds entries only by their whole label set
		s.Labels = slices.Sorted(maps.Keys(labels))
	}
	sums := generation.LabelSums{}
	texts := generation.Descriptions{}
	if b.Source != nil {
		texts.Of = b.Source.Described
	}
	err := generation.Scan(ctx, b.Store, b.Collection, s, func(e sdk.Entry) {
		if texts.Take(e) {
			return
		}
		for _, label := range form.Split(e.Label) {
			if all || labels[label] {
				sums.Add(label, e.Vector)
			}
		}
	})
	if err != nil {
		return err
	}
	texts.AddTo(sums)
	var gone []string
	for label := range known {
		if (all || labels[label]) && sums[label] == nil {
			gone = append(gone, label)
			delete(known, label)
		}
	}
	slices.Sort(gone)
	collection := generation.Centroids(b.Collection)
	entries := texts.Mark(sums.Entries())
	for _, e := range entries {
		known[e.Label] = true
	}
	err = b.Store.Delete(ctx, collection, gone)
	if err == nil {
		err = b.Store.Put(ctx, collection, entries)
	}
	if err == nil {
		err = b.Store.Commit(ctx, collection, state)
	}
	return written("store centroids", err)
}

// openVectors opens the vectors of earlier builds, once. A learning embedder has none, since each fitted state makes
// other vectors. An embedder that calls a service has none either: the response cache stores its responses, including
// responses to queries.
func (w *walk) openVectors() {
	if w.looked || w.Embedder.Fits() || w.Block.Embed.Info.Network {
		return
	}
	w.looked = true
	made := pipeline.StageDigest(w.Block.Embed, w.Embedder) + "\n" + string(w.Origin.Resolved)
	w.vectors = cache.OpenVectors(w.Vectors, made, w.Block.Embed.Use, w.Embedder.Dimension())
}

// embed gives the entries of a batch their vectors, and removes entries that failed without the others. It calls report
// with the number of entries of each step.
func (w *walk) embed(ctx context.Context, m *batch, report func(n int)) error {
	if len(m.entries) == 0 {
		return nil
	}
	w.openVectors()
	texts := m.texts()
	vectors := w.vectors.Get(texts)
	var missing []int
	for i, v := range vectors {
		if v == nil {
			missing = append(missing, i)
		}
	}
	w.Report.Reused += len(texts) - len(missing)
	if len(missing) < len(texts) {
		report(len(texts) - len(missing))
	}
	if len(missing) == 0 {
		m.give(vectors, nil)
		return nil
	}
	asked := generation.Pick(texts, missing)
	var made [][]float32
	var errs []error
	for from := 0; from < len(asked); from = len(made) {
		err := w.pace.call(w.Block.Embed, func(most int) error {
			vectors, failed, err := w.ask(ctx, asked[from:min(from+most, len(asked))])
			made, errs = append(made, vectors...), append(errs, failed...)
			return err
		})
		if err != nil {
			return err
		}
		report(len(made) - from)
	}
	failed := map[int]bool{}
	for i, n := range missing {
		if vectors[n] = made[i]; errs[i] != nil {
			failed[n], made[i] = true, nil
			w.refused.add(m.entries[n].ID, errs[i])
		}
	}
	w.vectors.Put(asked, made)
	m.give(vectors, failed)
	return nil
}

// pace chooses how many texts a call gives to a local embedder. A call then takes a few seconds at most, and progress
// stays visible with a slow model.
type pace struct {
	now   func() time.Time
	texts int // in the next call; 0: before the first
}

const (
	firstTexts = 32 // in the first call of a build
	leastTexts = 8
	quickCall  = time.Second     // after a faster call, the next one gets twice as many texts
	slowCall   = 4 * time.Second // after a slower call, the next one gets half as many
)

// call calls do with the most texts that it may embed. A service gets whole batches: it divides them itself, and
// processes several parts at a time.
func (p *pace) call(s *pipeline.Stage, do func(most int) error) error {
	if s.Info.Network || s.Info.Pends {
		return do(embedBatch)
	}
	texts, began := cmp.Or(p.texts, firstTexts), p.now()
	err := do(texts)
	switch took := p.now().Sub(began); {
	case took < quickCall:
		texts = min(2*texts, embedBatch)
	case took > slowCall:
		texts = max(texts/2, leastTexts)
	}
	p.texts = texts
	return err
}

// ask calls the embedder, and retries transient failures: one lost reply must not end a build that takes hours.
func (w *walk) ask(ctx context.Context, texts []string) (vectors [][]float32, errs []error, err error) {
	vectors = make([][]float32, len(texts))
	w.embeds.Later = w.Later.Work("embed."+w.Block.Name, w.Block.Embed, w.Embedder, func(i int) []string { return texts[i : i+1] })
	errs, err = w.embeds.Call(ctx, len(texts), func(ctx context.Context, handle string, at []int) error {
		embed := w.Embedder.Embed
		if c, ok := w.Embedder.(sdk.EmbedCollector); ok && handle != "" {
			embed = func(ctx context.Context, role sdk.Role, texts []string) ([][]float32, error) {
				return c.CollectVectors(ctx, handle, role, texts)
			}
		}
		found, err := embed(ctx, sdk.RolePassage, generation.Pick(texts, at))
		return generation.Spread(vectors, at, found, err)
	})
	return vectors, errs, err
}

// give sets the vectors of the entries, and removes the entries that failed.
func (m *batch) give(vectors [][]float32, failed map[int]bool) {
	rest := m.entries[:0:0]
	for i, e := range m.entries {
		if e.Vector = vectors[i]; !failed[i] {
			rest = append(rest, e)
		}
	}
	m.entries = rest
}

// walk goes through units once: to learn from their entries, or to store them.
type walk struct {
	*builder
	doing    string           // step of the progress reported per unit; empty: none
	unusable map[string]error // why a unit cannot be used, by id
	refused  refusals
}

// batches calls f with the entries of units, in batches of at most n entries and about generation.BatchBytes bytes of
// text. It notes and skips unusable units. If an enricher cannot continue, f still gets everything that was complete
// before.
func (w *walk) batches(ctx context.Context, wanted []generation.Unit, n int, f func(batch) error) error {
	w.Report.Unenriched, w.Report.FirstUnenriched = 0, generation.InvalidRow{} // this walk counts them again
	chunk := func(ctx context.Context, f func(generation.Document) error) error { return w.chunk(ctx, wanted, f) }
	hash := w.contentHash()
	b, far := batcher{delimiter: w.Block.Delimiter(), n: n, f: f}, w.measure(w.doing, wanted)
	err := w.Enrichers.Each(ctx, chunk, func(d generation.Document, added []additions) error {
		if err := w.Enrichers.checkNames(d.Meta); err != nil {
			return err
		}
		if w.unenriched(d, added) {
			d.Hash = redo(d.Hash)
		}
		d.Hash = hash(d.Hash)
		var entries []sdk.Entry
		switch {
		case len(d.Chunks) == 0:
		case w.Chunker == nil:
			entries = []sdk.Entry{d.Unit}
		default:
			entries = d.Entries()
		}
		if w.doing != "" {
			w.Progress.Report(far.add(len(entries), d.ID))
		}
		return b.add(d.ID, entries, w.Enrichers.Add(entries, added))
	})
	if ended := new(endedError); err != nil && !errors.As(err, &ended) {
		return err
	}
	return cmp.Or(b.flush(), err)
}

// unenriched counts passages without an addition that they should have, and reports whether there are any.
func (w *walk) unenriched(d generation.Document, added []additions) bool {
	count, first, why := w.Enrichers.unenriched(d, added)
	if count > 0 && w.Report.Unenriched == 0 {
		if w.Chunker != nil {
			why = fmt.Errorf("chunk %d: %w", first, why)
		}
		w.Report.FirstUnenriched = w.Source.At(d.ID, why)
	}
	w.Report.Unenriched += count
	return count > 0
}

// redo returns a hash that no content has, so that the next build tries the document again.
func redo(hash []byte) []byte {
	sum := sha256.Sum256(append([]byte("bare\n"), hash...))
	return sum[:generation.HashBytes]
}

// documentCount returns how many documents have entries; 0: the entries are rows.
func (w *walk) documentCount() int {
	if w.Chunker == nil && w.Block.Documents() == nil {
		return 0
	}
	return len(w.Source.Units) - len(w.unusable)
}

// mustFit reports whether a learning embedder must be fitted: the first time, and after the number of units has changed
// by more than a fifth. In between, its vectors stay comparable, so that a changed row needs only one new vector.
func (b *builder) mustFit(rows int) bool {
	return b.Embedder.Fits() && (b.note.State == nil || rows*5 < b.note.Fitted*4 || rows*5 > b.note.Fitted*6)
}

// use continues with an embedder that has learned. The index version records the values that the embedder chose for
// arguments left to it (sdk.Resolver).
func (b *builder) use(ctx context.Context, state []byte) (err error) {
	if b.Embedder, err = b.Starter.Embedder(ctx, state, b.Origin.Resolved); err == nil && b.Origin.Resolved == nil {
		b.Origin.Resolved, err = generation.ResolvedConfig(b.Embedder)
	}
	return err
}

// settled continues with the embedder state of the base index version, or of another edition of it, if that state is
// settled: other rows would not change it. So the vectors stay comparable, however often the source changes.
func (b *builder) settled(ctx context.Context) (bool, error) {
	state := generation.Settled(ctx, b.Store, b.Block.Name, cmp.Or(b.Origin.Base, b.Collection))
	if state == nil {
		return false, nil
	}
	if err := b.use(ctx, state); err != nil || b.Embedder.Fits() {
		return false, err
	}
	b.note.State, b.learnt, b.note.Fitted = state, state, len(b.Source.Units)
	return true, nil
}

// fit lets a fresh embedder learn from all entries, and continues with an embedder that has the fitted state.
func (b *builder) fit(ctx context.Context) (err error) {
	if settled, err := b.settled(ctx); settled || err != nil {
		return err
	}
	if b.Embedder, err = b.Starter.Embedder(ctx, nil, b.Origin.Resolved); err != nil {
		return err
	}
	w := &walk{builder: b, doing: "fitting"}
	if len(b.Enrichers) > 0 {
		w.doing = "enriching"
	}
	err = b.Embedder.Fit(ctx, func(yield func([]sdk.TrainingRow, error) bool) {
		ended := errors.New("the embedder learns no more")
		err := w.batches(ctx, b.Source.Units, generation.ScanPage, func(made batch) error {
			if !yield(made.training(), nil) {
				return ended
			}
			return nil
		})
		if err != nil && !errors.Is(err, ended) {
			yield(nil, err)
		}
	})
	if err != nil {
		return fmt.Errorf("fit %s: %w", b.Block.Embed.Use, err)
	}
	if b.note.State, err = b.Embedder.State(); err != nil {
		return fmt.Errorf("fit %s: %w", b.Block.Embed.Use, err)
	}
	b.learnt, b.note.Fitted = b.note.State, len(b.Source.Units)
	return b.use(ctx, b.note.State)
}

// training returns the entries as training rows for the embedder, with the texts that it embeds.
func (m batch) training() []sdk.TrainingRow {
	rows := make([]sdk.TrainingRow, len(m.entries))
	for i, text := range m.texts() {
		rows[i] = sdk.TrainingRow{ID: m.entries[i].ID, Label: m.entries[i].Label, Text: text}
	}
	return rows
}

const (
	embedBatch = 256             // rows per call of the embedder, at most
	inFlight   = 2               // batches in progress: one is embedded while another is stored
	checkpoint = 5 * time.Second // a first build commits this often, to resume after a kill
)

// put makes the entries of units, embeds and stores them; a plan only makes them. It returns the ids of entries that
// the units no longer have. A first build commits from time to time; later changes appear together.
func (w *walk) put(ctx context.Context, stock *generation.Stock, todo []generation.Unit, first bool) (surplus []string, err error) {
	produce := func(ctx context.Context, f func(batch) error) error {
		err := w.batches(ctx, todo, embedBatch, func(m batch) error {
			for _, u := range m.units {
				changed, gone := stock.Replace(u.id, u.entries)
				w.Report.Changed += changed
				w.Report.Added += u.entries - changed
				surplus = append(surplus, gone...)
			}
			return f(m)
		})
		surplus = append(surplus, stock.Rest()...)
		return err
	}
	if w.Plan {
		err = produce(ctx, func(batch) error { return nil })
		return surplus, err
	}
	made, embedded := make(chan batch, inFlight), make(chan batch, inFlight)
	whole := ctx
	g, ctx := errgroup.WithContext(ctx)
	var ended error
	g.Go(func() error {
		defer close(made)
		err := produce(ctx, func(m batch) error { return send(ctx, made, m) })
		if e := new(endedError); errors.As(err, &e) {
			ended, err = err, nil // the batches before it are stored
		}
		return err
	})
	g.Go(func() error {
		defer close(embedded)
		far := w.measure("embedding", todo)
		for m := range made {
			report := func(entries int, ended ...string) {
				if w.doing == "" {
					w.Progress.Report(far.add(entries, ended...))
				}
			}
			if err := w.embed(ctx, &m, func(n int) { report(n) }); err != nil {
				return fmt.Errorf("embed: %w", err)
			}
			report(0, m.ids()...)
			if err := send(ctx, embedded, m); err != nil {
				return err
			}
		}
		return nil
	})
	g.Go(func() error { return w.store(ctx, embedded, first) })
	if err = g.Wait(); err != nil || ended == nil {
		return surplus, err
	}
	if first {
		if err := w.commit(whole); err != nil {
			return nil, err
		}
	}
	return nil, ended
}

func (w *walk) store(ctx context.Context, batches <-chan batch, first bool) error {
	committed := time.Now()
	for m := range batches {
		if len(m.entries) > 0 {
			if err := w.putBatch(ctx, m.entries); err != nil {
				return err
			}
		}
		if first && time.Since(committed) > checkpoint {
			if err := w.commit(ctx); err != nil {
				return err
			}
			if err := w.lock(ctx); err != nil {
				return err
			}
			committed = time.Now()
		}
	}
	return nil
}

func send[T any](ctx context.Context, to chan<- T, value T) error {
	select {
	case to <- value:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
