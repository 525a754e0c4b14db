package knowledge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/knowledge"

	"github.com/racflow/racflow/engine/internal/knowledge/generation"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
	"github.com/racflow/racflow/sdk/support"
)

// letters embeds a text as its counts of the letters a to d. It records which passages it embedded and, if it
// learns, what it was fitted to.
type letters struct {
	fits        bool
	opened      json.RawMessage // values resolved before it was started
	settles     bool            // it resolves an argument from what it has learned, and then stops learning
	fitted      int
	state       []byte
	passages    []string
	fingerprint string
	fail        error
	lost        int                     // number of next calls with a transient failure
	failAfter   int                     // passages before it fails; 0: it never fails
	strict      bool                    // it refuses some texts
	pends       func()                  // called for each ask with delayed results; nil: results are immediate
	asks        int                     // number of pending asks
	ends        func(text string) error // for a whole call; nil: none fails
	machine     *machine                // nil: it resolves nothing
}

func (l *letters) Dimension() int { return 4 }

func (l *letters) Embed(ctx context.Context, role sdk.Role, texts []string) ([][]float32, error) {
	if l.pends == nil {
		return l.find(ctx, role, texts)
	}
	l.asks++
	l.pends()
	return nil, &sdk.Pending{Handle: fmt.Sprint(l.asks)}
}

func (l *letters) find(_ context.Context, role sdk.Role, texts []string) ([][]float32, error) {
	if l.fail != nil {
		return nil, l.fail
	}
	if l.lost > 0 {
		l.lost--
		return nil, sdk.Transient(errors.New("no reply"), 0)
	}
	if l.failAfter > 0 && len(l.passages) >= l.failAfter {
		return nil, errors.New("cut off")
	}
	if l.fits && l.state == nil {
		return nil, errors.New("embedding before being fitted")
	}
	if l.ends != nil {
		for _, text := range texts {
			if err := l.ends(text); err != nil {
				return nil, err
			}
		}
	}
	vectors, failed := make([][]float32, len(texts)), sdk.RowErrors{}
	for i, text := range texts {
		if l.strict && text == "unreadable" {
			failed[i] = errors.New("the text is unreadable")
			continue
		}
		if role == sdk.RolePassage {
			l.passages = append(l.passages, text)
		}
		vectors[i] = make([]float32, 4)
		for j, letter := range "abcd" {
			vectors[i][j] = float32(strings.Count(text, string(letter)))
		}
	}
	if len(failed) > 0 {
		return vectors, failed
	}
	return vectors, nil
}

func (l *letters) Fit(_ context.Context, rows iter.Seq2[[]sdk.TrainingRow, error]) error {
	for batch, err := range rows {
		if err != nil {
			return err
		}
		l.fitted += len(batch)
	}
	return nil
}

func (l *letters) State() ([]byte, error) { return fmt.Appendf(nil, "fitted to %d", l.fitted), nil }
func (l *letters) Fits() bool             { return l.fits && !(l.settles && l.state != nil) }
func (l *letters) Fingerprint() string {
	if l.machine != nil && l.machine.tells {
		return l.fingerprint + string(l.state) + l.machine.precision
	}
	return l.fingerprint + string(l.state)
}

// starter provides the embedder and a store that lives as long as one Open, as its process would.
type starter struct {
	t        *testing.T
	memory   sdk.Stage // stored entries outlive the store
	embedder *letters
	chunker  generation.Chunker                      // nil: the block has none
	enrich   map[string]*adder                       // by use
	losses   *atomic.Int64                           // number of Puts at which the store's process ends; nil: none
	keeps    error                                   // error of every Drop; nil: none
	broken   error                                   // error when the embedder starts
	strict   bool                                    // the store refuses some texts
	wrap     func(generation.Store) generation.Store // wraps the store; nil: no wrapper
}

func (s starter) Embedder(_ context.Context, state []byte, resolved json.RawMessage) (generation.Embedder, error) {
	s.embedder.state, s.embedder.opened = state, resolved
	if m := s.embedder.machine; m != nil {
		if err := m.start(resolved); err != nil {
			return nil, err
		}
		return resolver{s.embedder}, s.broken
	}
	if s.embedder.settles {
		return settler{s.embedder}, s.broken
	}
	return s.embedder, s.broken
}

func (s starter) Chunker(context.Context) (generation.Chunker, error) { return s.chunker, nil }

func (s starter) Enricher(_ context.Context, stage *pipeline.Stage) (generation.Enricher, error) {
	return s.enrich[stage.Use], nil
}

func (s starter) Store(context.Context) (generation.Store, error) {
	opened, err := enginetest.Open(s.t, s.memory, sdk.Setup{}, "{}")
	var store generation.Store = opened
	if s.losses != nil {
		store = lossy{store, s.losses}
	}
	if s.strict {
		store = strict{store}
	}
	if s.keeps != nil {
		store = keeper{store, s.keeps}
	}
	if s.wrap != nil {
		store = s.wrap(store)
	}
	return store, err
}

// bench is a knowledge over a file that a test rewrites.
type bench struct {
	t        *testing.T
	stages   starter
	block    *pipeline.Knowledge
	embedder *letters
}

func newBench(t *testing.T) *bench {
	dir := t.TempDir()
	e := &letters{}
	return &bench{
		t: t, embedder: e, stages: starter{t: t, memory: enginetest.Memory(), embedder: e},
		block: &pipeline.Knowledge{
			Name:     "k",
			Sources:  []pipeline.Source{{Path: filepath.Join(dir, "rows.tsv"), ID: "id", Text: "text", Label: "label"}},
			Embed:    &pipeline.Stage{Block: "embed", Use: "letters"},
			Store:    &pipeline.Stage{Block: "store", Use: "memory"},
			Analyzer: "standard",
		},
	}
}

// open writes the rows and opens the knowledge. It returns the embedded texts.
func (b *bench) open(rows ...string) (*knowledge.Knowledge, []string) {
	b.t.Helper()
	content := strings.Join(append([]string{"id\ttext\tlabel"}, rows...), "\n") + "\n"
	put(b.t, b.block.Sources[0].Path, content)
	b.embedder.passages = nil
	k := must.Get(knowledge.Open(b.t.Context(), b.block, b.stages, knowledge.Options{}))(b.t)
	slices.Sort(b.embedder.passages)
	return k, b.embedder.passages
}

// openFailing opens the knowledge over a file's content. Its processes end with it, as at the end of
// a run.
func (b *bench) openFailing(content string) error {
	b.t.Helper()
	put(b.t, b.block.Sources[0].Path, content)
	b.embedder.passages = nil
	return b.opening(b.t.Context(), knowledge.Options{})
}

// opening opens the knowledge as it is, and ends its processes.
func (b *bench) opening(ctx context.Context, o knowledge.Options) (err error) {
	b.t.Helper()
	b.t.Run("opening", func(t *testing.T) {
		own := b.stages
		own.t = t
		_, err = knowledge.Open(ctx, b.block, own, o)
	})
	return err
}

// faults returns the errors of rows, without the path of their file.
func (b *bench) faults(k *knowledge.Knowledge) (reported []string) {
	for _, f := range k.Report.Invalid {
		reported = append(reported, strings.TrimPrefix(f.String(), filepath.Dir(b.block.Sources[0].Path)))
	}
	return reported
}

func (b *bench) nearest(k *knowledge.Knowledge, text string) []string {
	b.t.Helper()
	ranking := sdk.Ranking{Search: sdk.Search{Mode: sdk.ModeDense, NumCandidates: 10}, Fusion: sdk.Fusion{Method: support.Weighted, DenseWeight: 1}, TopK: 10}
	found, vectors, err := k.Retrieve(b.t.Context(), ranking, []sdk.Query{{Text: text}})
	if err != nil || len(vectors) != 1 {
		b.t.Fatalf("retrieve gave %d vectors and %v", len(vectors), err)
	}
	var ids []string
	for _, c := range found[0] {
		ids = append(ids, c.ID)
	}
	return ids
}

func TestIncremental(t *testing.T) {
	b := newBench(t)
	steps := []struct {
		name     string
		rows     []string
		embedded []string
		report   knowledge.BuildReport
		labels   []string
		nearestA []string // to "a"
	}{
		{"first build", []string{"1\ta\tx", "2\tab\tx", "3\tcd\ty"}, []string{"a", "ab", "cd"},
			knowledge.BuildReport{Entries: 3, Added: 3}, []string{"x", "y"}, []string{"1", "2", "3"}},
		{"nothing changed", []string{"1\ta\tx", "2\tab\tx", "3\tcd\ty"}, nil,
			knowledge.BuildReport{Entries: 3, Unchanged: true}, []string{"x", "y"}, []string{"1", "2", "3"}},
		{"another order", []string{"3\tcd\ty", "1\ta\tx", "2\tab\tx"}, nil,
			knowledge.BuildReport{Entries: 3}, []string{"x", "y"}, []string{"1", "2", "3"}},
		{"a changed row", []string{"1\ta\tx", "2\taaab\tx", "3\tcd\ty"}, []string{"aaab"},
			knowledge.BuildReport{Entries: 3, Changed: 1}, []string{"x", "y"}, []string{"1", "2", "3"}},
		{"a changed label", []string{"1\ta\tx", "2\taaab\tz", "3\tcd\ty"}, []string{"aaab"},
			knowledge.BuildReport{Entries: 3, Changed: 1}, []string{"x", "y", "z"}, []string{"1", "2", "3"}},
		{"a removed row", []string{"2\taaab\tz", "3\tcd\ty"}, nil,
			knowledge.BuildReport{Entries: 2, Removed: 1}, []string{"y", "z"}, []string{"2", "3"}},
		{"all at once", []string{"3\tca\ty", "4\ta\ty"}, []string{"a", "ca"},
			knowledge.BuildReport{Entries: 2, Added: 1, Changed: 1, Removed: 1}, []string{"y"}, []string{"4", "3"}},
	}
	for _, step := range steps {
		k, embedded := b.open(step.rows...)
		step.report.Name, step.report.Embedder, step.report.Store = "k", "letters", "memory"
		must.Equal(t, step.name+": report", step.report, k.Report)
		must.Equal(t, step.name+": embedded", step.embedded, embedded)
		must.Equal(t, step.name+": labels", step.labels, k.Labels)
		must.Equal(t, step.name+": nearest to a", step.nearestA, b.nearest(k, "a"))
	}
}

// A row with a set of labels belongs to each of them.
func TestSetsOfLabels(t *testing.T) {
	b := newBench(t)
	b.block.Sources[0].Labels.Many = true
	nearest := func(k *knowledge.Knowledge) (labels []string) {
		for _, c := range must.Get(k.Prototypes(t.Context(), [][]float32{{1, 0, 0, 0}}, 10))(t)[0] {
			if c.Dense > .99 {
				labels = append(labels, c.Label)
			}
		}
		return labels
	}
	k, _ := b.open("1\ta\ty;x", "2\tb\tz", "3\tc\tz")
	must.Equal(t, "labels", []string{"x", "y", "z"}, k.Labels)
	must.Equal(t, "nearest", []string{"x", "y"}, nearest(k))
	k, _ = b.open("1\ta\tx", "2\tb\tz", "3\ta\tz;w")
	must.Equal(t, "labels after changes", []string{"w", "x", "z"}, k.Labels)
	must.Equal(t, "nearest after changes", []string{"w", "x"}, nearest(k))
	must.Equal(t, "labels of the entries", []string{"w", "x", "z"}, must.Get(k.ReadLabels(t.Context()))(t))
}

func TestPrototypes(t *testing.T) {
	b := newBench(t)
	nearest := func(k *knowledge.Knowledge) map[string]float32 {
		found := must.Get(k.Prototypes(t.Context(), [][]float32{{1, 0, 0, 0}}, 10))(t)
		all := map[string]float32{}
		for _, c := range found[0] {
			all[c.Label] = c.Dense
		}
		return all
	}
	close := cmp.Comparer(func(a, b float32) bool { return a-b < 1e-6 && b-a < 1e-6 })
	k, _ := b.open("1\ta\tx", "2\tb\tx", "3\tc\ty")
	// x is the mean of a and b, 45 degrees from a.
	must.Equal(t, "at first", map[string]float32{"x": 0.70710678, "y": 0}, nearest(k), close)
	k, _ = b.open("1\ta\tx", "3\tac\ty")
	must.Equal(t, "after changes", map[string]float32{"x": 1, "y": 0.70710678}, nearest(k), close)
}

func TestFitting(t *testing.T) {
	b := newBench(t)
	b.embedder.fits = true
	rows := make([]string, 10)
	for i := range rows {
		rows[i] = fmt.Sprintf("%d\ta%s\tx", i, strings.Repeat("b", i))
	}
	if _, embedded := b.open(rows...); len(embedded) != 10 || string(b.embedder.state) != "fitted to 10" {
		t.Fatalf("first: %d embedded, state %q", len(embedded), b.embedder.state)
	}
	rows[3] = "3\tccc\tx"
	if _, embedded := b.open(rows...); len(embedded) != 1 || string(b.embedder.state) != "fitted to 10" {
		t.Errorf("after a small change: %d embedded, state %q", len(embedded), b.embedder.state)
	}
	b.embedder.fitted = 0
	if _, embedded := b.open(rows[:7]...); len(embedded) != 7 || string(b.embedder.state) != "fitted to 7" {
		t.Errorf("after a third was removed: %d embedded, state %q", len(embedded), b.embedder.state)
	}
}

// An interrupted build after a refit must not leave vectors of two fits that count as one.
func TestAFitThatWasCutOff(t *testing.T) {
	b := newBench(t)
	b.embedder.fits = true
	rows := make([]string, 600)
	for i := range rows {
		rows[i] = fmt.Sprintf("%d\t%s\tx", i, strings.Repeat("a", i+1))
	}
	b.open(rows[:300]...)
	b.embedder.failAfter = 300
	if err := b.openFailing(strings.Join(append([]string{"id\ttext\tlabel"}, rows...), "\n")); err == nil {
		t.Fatal("the build was not cut off")
	}
	b.embedder.failAfter = 0
	if _, embedded := b.open(rows...); len(embedded) != 600 {
		t.Errorf("%d of 600 rows were embedded with the new fit", len(embedded))
	}
	if _, embedded := b.open(rows[:599]...); len(embedded) != 0 {
		t.Errorf("then %d were embedded again", len(embedded))
	}
}

// After a store's process ended during a build, the build starts again.
func TestAStoreThatWasLost(t *testing.T) {
	b := newBench(t)
	b.stages.losses = &atomic.Int64{}
	b.stages.losses.Store(2)
	if k, _ := b.open("1\ta\tx", "2\tb\ty"); k.Report.Entries != 2 || len(k.Labels) != 2 {
		t.Errorf("report %+v", k.Report)
	}
	b.embedder.fits = true // the try after the loss knows what the earlier try has learned
	b.stages.losses.Store(1)
	rows := []string{"1\ta\tx", "2\tb\ty", "3\tc\ty"}
	b.block.Name = "fitted"
	b.open(rows...)
	if k, embedded := b.open(rows...); len(embedded) != 0 || !k.Report.Unchanged {
		t.Errorf("a build that was started over is not found again: %d embedded, report %+v", len(embedded), k.Report)
	}
	b.stages.losses.Store(100)
	if err := b.openFailing("id\ttext\tlabel\n9\td\tz\n"); err == nil || !strings.Contains(err.Error(), "gone again") {
		t.Errorf("a store that is always lost gives %v", err)
	}
}

// A build waits for another build as long as that is working. It gives up on a store that refuses it
// repeatedly for another reason.
func TestTwoBuilds(t *testing.T) {
	const written, changed = time.Second, 0 // sdk.Error.RetryAfter: the lock is held, or the collection was changed
	for _, test := range []struct {
		name    string
		refuses []time.Duration
		waits   int
		fails   string
	}{
		{name: "the other one holds the lock for long", refuses: slices.Repeat([]time.Duration{written}, 50), waits: 1},
		{name: "it commits after a long time", refuses: append(slices.Repeat([]time.Duration{written}, 20), changed), waits: 1},
		{name: "it commits now and then", refuses: slices.Repeat([]time.Duration{written, changed}, 20), waits: 1},
		{name: "it has just committed", refuses: []time.Duration{changed}},
		{name: "the store is lost each time", refuses: slices.Repeat([]time.Duration{changed}, 10), fails: "refused"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t)
			put(t, b.block.Sources[0].Path, "id\ttext\tlabel\n1\ta\tx\n2\tb\ty\n")
			b.stages.wrap = func(s generation.Store) generation.Store {
				return &refusing{Store: s, collection: "k-", left: test.refuses}
			}
			waits := 0
			synctest.Test(t, func(t *testing.T) {
				own := b.stages
				own.t = t
				k, err := knowledge.Open(t.Context(), b.block, own, knowledge.Options{Waiting: func(string, error) { waits++ }})
				switch {
				case (err != nil) != (test.fails != "") || err != nil && !strings.Contains(err.Error(), test.fails):
					t.Errorf("error %v", err)
				case err == nil && (k.Report.Added != 2 || len(k.Labels) != 2):
					t.Errorf("report %+v", k.Report)
				}
			})
			if waits != test.waits {
				t.Errorf("%d waits are reported, want %d", waits, test.waits)
			}
		})
	}
}

// A build may have to store centroids later, since another build stores them at that moment. It reports
// everything that it has done.
func TestTwoBuildsStoreCentroids(t *testing.T) {
	b := newBench(t)
	b.stages.wrap = func(s generation.Store) generation.Store {
		return &refusing{Store: s, collection: "-labels", left: []time.Duration{time.Second, 0}}
	}
	if k, _ := b.open("1\ta\tx", "2\tb\ty"); k.Report.Added != 2 || k.Report.Entries != 2 || k.Report.Unchanged || len(k.Labels) != 2 {
		t.Errorf("report %+v, labels %q", k.Report, k.Labels)
	}
}

// During a first build that commits from time to time, no other build can write in between.
func TestACheckpointKeepsTheLock(t *testing.T) {
	b := newBench(t)
	content := "id\ttext\tlabel\n"
	for i := range 600 {
		content += fmt.Sprintf("%d\ta %d\tx\n", i, i)
	}
	put(t, b.block.Sources[0].Path, content)
	slow := &slow{}
	b.stages.wrap = func(s generation.Store) generation.Store { slow.Store = s; return slow }
	synctest.Test(t, func(t *testing.T) {
		own := b.stages
		own.t = t
		must.Get(knowledge.Open(t.Context(), b.block, own, knowledge.Options{}))(t)
	})
	if slow.commits < 4 || slow.open > 0 {
		t.Errorf("%d commits, %d puts without a lock", slow.commits, slow.open)
	}
}

// slow is a store whose Puts take longer than the time between two checkpoints.
type slow struct {
	generation.Store
	locked        bool
	commits, open int // Puts between which another process could have written
}

func (s *slow) Delete(ctx context.Context, collection string, ids []string) error {
	s.locked = true
	return s.Store.Delete(ctx, collection, ids)
}

func (s *slow) Commit(ctx context.Context, collection string, note []byte) error {
	s.locked = false
	s.commits++
	return s.Store.Commit(ctx, collection, note)
}

func (s *slow) Put(ctx context.Context, collection string, entries []sdk.Entry) error {
	if !s.locked {
		s.open++
	}
	time.Sleep(6 * time.Second)
	return s.Store.Put(ctx, collection, entries)
}

// refusing is a store that refuses changes to a collection while others write to it.
type refusing struct {
	generation.Store
	collection string          // a part of its name
	left       []time.Duration // sdk.Error.RetryAfter of the next refusals
}

func (r *refusing) Delete(ctx context.Context, collection string, ids []string) error {
	if strings.Contains(collection, r.collection) && len(r.left) > 0 {
		after := r.left[0]
		r.left = r.left[1:]
		return sdk.Transient(errors.New("refused"), after)
	}
	return r.Store.Delete(ctx, collection, ids)
}

// lossy is a store whose process ends at some Puts.
type lossy struct {
	generation.Store
	losses *atomic.Int64
}

func (l lossy) Put(ctx context.Context, collection string, entries []sdk.Entry) error {
	if l.losses.Add(-1) >= 0 {
		return sdk.Transient(errors.New("gone again"), 0)
	}
	return l.Store.Put(ctx, collection, entries)
}

func TestFaults(t *testing.T) {
	b := newBench(t)
	for range 2 { // errors are reported again although nothing changed
		k, _ := b.open("1\ta\tx", "2\t\tx", "1\tb\ty", "4\tc\ty")
		reported := b.faults(k)
		want := []string{"/rows.tsv:3: it has no text", `/rows.tsv:4: its id "1" stands on line 2 already; ids must be unique`}
		if d := cmp.Diff(want, reported); d != "" || k.Report.Entries != 2 {
			t.Errorf("%d entries, faults (-want +got):\n%s", k.Report.Entries, d)
		}
	}
}

// Rows that the embedder or the store refuses are omitted, with their lines; their earlier content is removed.
func TestRefusedRows(t *testing.T) {
	b := newBench(t)
	b.stages.strict, b.embedder.strict = true, true
	check := func(k *knowledge.Knowledge, entries, added, changed, removed int, want ...string) {
		t.Helper()
		r := k.Report
		must.Equal(t, "errors", want, b.faults(k))
		must.Equal(t, "entries, added, changed, removed, invalid", [5]int{entries, added, changed, removed, len(want)}, [5]int{r.Entries, r.Added, r.Changed, r.Removed, r.InvalidCount})
		if found := b.nearest(k, "a"); len(found) != entries {
			t.Errorf("found %q, want %d entries", found, entries)
		}
	}
	for _, added := range []int{2, 0} { // reported again although nothing changed
		k, _ := b.open("1\ta\tx", "2\tunstorable\tx", "3\t\tx", "4\tb\ty", "5\tunreadable\tz")
		check(k, 2, added, 0, 0, "/rows.tsv:3: the text is unstorable", "/rows.tsv:4: it has no text", "/rows.tsv:6: the text is unreadable")
		must.Equal(t, "labels", []string{"x", "y"}, k.Labels)
	}
	k, _ := b.open("1\tunstorable\tx", "2\tc\tx", "4\tb\ty")
	check(k, 2, 1, 0, 1, "/rows.tsv:2: the text is unstorable")
	k, _ = b.open("1\ta\tx", "2\tc\tx", "4\tb\ty")
	check(k, 3, 1, 0, 0)
	if err := b.openFailing("id\ttext\tlabel\n1\tunstorable\tx\n2\tunreadable\tx\n"); err == nil || !strings.Contains(err.Error(), "rows.tsv:2: the text is unstorable") {
		t.Errorf("nothing that can be stored: %v", err)
	}
	k, _ = b.open("1\ta\tx", "2\tc\tx", "4\tb\ty")
	check(k, 3, 0, 0, 0)
}

// strict is a store that refuses some texts.
type strict struct{ generation.Store }

func (s strict) Put(ctx context.Context, collection string, entries []sdk.Entry) error {
	failed := sdk.RowErrors{}
	var fit []sdk.Entry
	for i, e := range entries {
		if e.Text == "unstorable" {
			failed[i] = sdk.Invalid(errors.New("the text is unstorable"))
		} else {
			fit = append(fit, e)
		}
	}
	if err := s.Store.Put(ctx, collection, fit); err != nil || len(failed) == 0 {
		return err
	}
	return failed
}

func TestRowsWithoutIDs(t *testing.T) {
	b := newBench(t)
	b.block.Sources[0].ID = "nothing"
	b.open("-\ta\tx", "-\tb\tx", "-\tb\tx", "-\tc\ty")
	k, embedded := b.open("-\tb\tx", "-\tb\tx", "-\tc\ty", "-\td\ty")
	if d := cmp.Diff([]string{"d"}, embedded); d != "" || k.Report.Removed != 1 {
		t.Errorf("%d removed, embedded (-want +got):\n%s", k.Report.Removed, d)
	}
}

// Long texts, and many texts: no call may exceed a message between processes.
func TestLongTexts(t *testing.T) {
	must.NoRace(t)
	b := newBench(t)
	rows := make([]string, 70)
	for i := range rows {
		rows[i] = fmt.Sprintf("%d\t%s\tx%d", i, strings.Repeat("abcd ", 200_000), i%3)
	}
	if k, embedded := b.open(rows...); len(embedded) != 70 || len(k.Labels) != 3 {
		t.Errorf("%d embedded, labels %q", len(embedded), k.Labels)
	}
	k, _ := b.open(rows...)
	if all, err := k.Random(t.Context(), []string{"p"}, sdk.Draw{Count: 100}, false); err != nil || len(all[0]) != 70 {
		t.Errorf("%d examples, %v", len(all[0]), err)
	}
}

func TestSourceErrors(t *testing.T) {
	b := newBench(t)
	for name, content := range map[string]string{"empty": "", "only a header": "id\ttext\tlabel\n", "no header": "1\ta\tx\n", "utf-16": "\xff\xfea\x00"} {
		put(t, b.block.Sources[0].Path, content)
		_, err := knowledge.Open(t.Context(), b.block, b.stages, knowledge.Options{})
		var source *generation.SourceError
		if !errors.As(err, &source) {
			t.Errorf("%s: got %v, want a SourceError", name, err)
		}
	}
}

// A lost reply is requested again, as often as the block says.
func TestEmbeddingIsTriedAgain(t *testing.T) {
	b := newBench(t)
	b.block.Embed.Retries, b.embedder.lost = 2, 2
	if k, embedded := b.open("1\ta\tx", "2\tb\ty"); len(embedded) != 2 || k.Report.Entries != 2 {
		t.Errorf("%d entries, embedded %q", k.Report.Entries, embedded)
	}
	b.embedder.lost = 3
	if err := b.openFailing("id\ttext\tlabel\n9\td\tz\n"); err == nil || !strings.Contains(err.Error(), "no reply") || b.embedder.lost != 0 {
		t.Errorf("got %v, %d calls too few", err, b.embedder.lost)
	}
}

func TestPlanWritesNothing(t *testing.T) {
	b := newBench(t)
	b.open("1\ta\tx", "2\tb\ty")
	must.Do(t, os.WriteFile(b.block.Sources[0].Path, []byte("id\ttext\tlabel\n1\tc\tx\n3\td\ty\n"), 0o600))
	for range 2 {
		k := must.Get(knowledge.Open(t.Context(), b.block, b.stages, knowledge.Options{Plan: true}))(t)
		want := knowledge.BuildReport{Name: "k", Embedder: "letters", Store: "memory", Entries: 2, Added: 1, Changed: 1, Removed: 1}
		must.Equal(t, "report", want, k.Report)
	}
}
