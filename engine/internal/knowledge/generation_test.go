package knowledge_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/engine/internal/knowledge/generation"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// keeper is a store that drops nothing.
type keeper struct {
	generation.Store
	err error
}

func (k keeper) Drop(context.Context, string) error { return k.err }

func (b *bench) history() *generation.History {
	b.t.Helper()
	return must.Get(generation.List(b.t.Context(), b.block, b.stages))(b.t)
}

// states lists the index versions as "analyzer embedder state".
func (b *bench) states() []string {
	b.t.Helper()
	var all []string
	for _, g := range b.history().Generations {
		all = append(all, strings.Join([]string{g.Analyzer, g.Embedder, string(g.State)}, " "))
	}
	slices.Sort(all)
	return all
}

func (b *bench) store() generation.Store {
	b.t.Helper()
	return must.Get(b.stages.Store(b.t.Context()))(b.t)
}

// rewrite commits changed notes to the index versions.
func (b *bench) rewrite(change func(note map[string]any)) {
	b.t.Helper()
	store := b.store()
	all := must.Get(store.List(b.t.Context()))(b.t)
	for _, c := range all {
		var note map[string]any
		if json.Unmarshal(c.Note, &note) != nil {
			continue // centroids
		}
		analyzer, _ := note["analyzer"].(string)
		change(note)
		text, err := json.Marshal(note)
		if err == nil {
			_, err = store.Open(b.t.Context(), c.Name, sdk.Schema{Dimension: c.Dimension, Analyzer: analyzer})
		}
		if err == nil {
			err = store.Commit(b.t.Context(), c.Name, text)
		}
		must.Do(b.t, err)
	}
}

// age makes all index versions an hour older.
func (b *bench) age() {
	b.t.Helper()
	b.rewrite(func(note map[string]any) { note["changed"] = time.Now().Add(-time.Hour) })
}

func (b *bench) collections() int {
	b.t.Helper()
	return len(must.Get(b.store().List(b.t.Context()))(b.t))
}

func (b *bench) wantStates(what string, want ...string) {
	b.t.Helper()
	must.Equal(b.t, what+": generations", want, b.states())
}

func TestGenerationsSwitchWhenComplete(t *testing.T) {
	b := newBench(t)
	rows := []string{"1\ta\tx", "2\tb\ty"}
	content := "id\ttext\tlabel\n" + strings.Join(rows, "\n") + "\n"
	b.open(rows...)
	b.wantStates("first", "standard letters current")

	b.block.Analyzer, b.embedder.fail = "code", errors.New("out of order")
	if err := b.openFailing(content); err == nil {
		t.Fatal("the build did not fail")
	}
	b.wantStates("after a failed build", "code letters incomplete", "standard letters old")
	if now := b.history().Current(); now == nil || now.Analyzer != "code" || now.Entries != 0 {
		t.Errorf("the current generation is %+v", now)
	}

	b.block.Analyzer = "standard"
	if k, embedded := b.open(rows...); len(embedded) > 0 || !k.Report.Unchanged {
		t.Errorf("the old generation was embedded again: %q", embedded)
	}
	b.wantStates("to the file as it was", "code letters incomplete", "standard letters current")
	b.embedder.fail = nil
	if k, _ := b.open(rows...); !slices.Equal(b.nearest(k, "a"), []string{"1", "2"}) {
		t.Errorf("the old generation finds %q", b.nearest(k, "a"))
	}

	b.block.Analyzer = "code"
	if k, _ := b.open(rows...); k.Report.Entries != 2 || len(k.Report.Retired) > 0 {
		t.Errorf("report %+v", k.Report)
	}
	b.wantStates("after the switch", "code letters current", "standard letters old")
}

func TestABuildRemovesWhatItReplaces(t *testing.T) {
	rows := []string{"1\ta\tx", "2\tb\ty"}
	tests := []struct {
		name   string
		change func(*bench)
		gone   bool
	}{
		{"another analyzer", func(b *bench) { b.block.Analyzer = "code" }, true},
		{"another model", func(b *bench) { b.embedder.fingerprint = "another" }, true},
		{"other columns", func(b *bench) { b.block.Sources[0].Meta = []string{"label"} }, true},
		{"another embedder", func(b *bench) { b.block.Embed.Use = "words" }, false},
		{"another source", func(b *bench) { b.block.Sources[0].Path += ".tsv" }, false},
		{"another file", func(b *bench) { b.block.Range.Filename = "other.hcl" }, false},
		{"other rows", func(b *bench) {}, false},
		{"a store that keeps it", func(b *bench) {
			b.block.Analyzer, b.stages.keeps = "code", errors.New("not today")
		}, false},
		{"a young one", func(b *bench) {
			b.block.Analyzer = "code"
			b.rewrite(func(note map[string]any) { note["changed"] = time.Now().Add(-time.Minute) })
		}, false},
		{"an incomplete one", func(b *bench) {
			b.block.Analyzer = "code"
			b.rewrite(func(note map[string]any) { note["complete"] = false })
		}, true},
		{"one that was made by an older version", func(b *bench) {
			b.block.Analyzer = "code"
			b.rewrite(func(note map[string]any) {
				for _, key := range []string{"path", "embedder", "config", "analyzer", "built", "changed"} {
					delete(note, key)
				}
			})
		}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t)
			b.open(rows...)
			b.age()
			old := b.history().Current().Collection
			test.change(b)
			k, _ := b.open(append(rows, "3\tc\tz")...)
			var retired []string
			for _, g := range k.Report.Retired {
				retired = append(retired, g.Collection)
			}
			if got := slices.Equal(retired, []string{old}); got != test.gone || !got && len(retired) > 0 {
				t.Errorf("removed %q, the old one is %s", retired, old)
			}
			has := slices.ContainsFunc(b.history().Generations, func(g generation.Generation) bool { return g.Collection == old })
			if has == test.gone {
				t.Errorf("listed afterwards: %v", has)
			}
			if n := b.collections(); test.gone && n != 2 {
				t.Errorf("%d collections are left, want the entries and their centroids", n)
			}
			kept := errors.Join(k.Report.Kept...)
			if b.stages.keeps != nil && !errors.Is(kept, b.stages.keeps) || b.stages.keeps == nil && kept != nil {
				t.Errorf("told why it stays: %v", kept)
			}
			if got := b.nearest(k, "c"); got[0] != "3" {
				t.Errorf("the knowledge finds %q", got)
			}
		})
	}
}

func TestChangesInPlaceMakeNoGeneration(t *testing.T) {
	b := newBench(t)
	b.open("1\ta\tx", "2\tb\ty")
	b.age()
	first := b.history().Generations[0]
	b.open("1\ta\tx", "2\tc\ty", "3\td\tz")
	all := b.history().Generations
	if len(all) != 1 || all[0].Entries != 3 || all[0].State != generation.Current {
		t.Fatalf("generations %+v", all)
	}
	if g := all[0]; !g.Built.Equal(first.Built) || time.Since(g.Built) > time.Minute || !g.Changed.After(first.Changed) {
		t.Errorf("built %v, changed %v; before: %v, %v", g.Built, g.Changed, first.Built, first.Changed)
	}
}

func TestNotesHoldNoSecrets(t *testing.T) {
	b := newBench(t)
	b.block.Embed.Config = pipeline.Config{Open: []byte(`{"key":"hush"}`), Public: []byte(`{"key":"(secret)"}`)}
	b.open("1\ta\tx")
	if g := b.history().Generations[0]; string(g.Config) != `{"key":"(secret)"}` {
		t.Errorf("config %s", g.Config)
	}
	all, err := b.store().List(t.Context())
	if err != nil || len(all) != 2 {
		t.Fatalf("%d collections, %v", len(all), err)
	}
	for _, c := range all {
		if strings.Contains(string(c.Note), "hush") {
			t.Errorf("%s has the note %s", c.Name, c.Note)
		}
	}
}

func TestIncompleteGenerations(t *testing.T) {
	b := newBench(t)
	rows := make([]string, 600)
	for i := range rows {
		rows[i] = strings.Repeat("r", i+1) + "\t" + strings.Repeat("a", i+1) + "\tx"
	}
	content := "id\ttext\tlabel\n" + strings.Join(rows, "\n") + "\n"
	b.embedder.failAfter = 300
	if err := b.openFailing(content); err == nil {
		t.Fatal("the build was not cut off")
	}
	b.wantStates("cut off", "standard letters incomplete")
	if h := b.history(); !h.Generations[0].Current || !h.Generations[0].Built.IsZero() {
		t.Errorf("%+v", h.Generations[0])
	}
	b.embedder.failAfter = 0
	if k, _ := b.open(rows...); k.Report.Entries != 600 || len(k.Labels) != 1 {
		t.Errorf("resumed: %+v", k.Report)
	}
	b.wantStates("resumed", "standard letters current")

	b.block.Analyzer, b.embedder.failAfter = "code", 300
	if err := b.openFailing(content); err == nil {
		t.Fatal("the build was not cut off")
	}
	b.block.Analyzer = "standard"
	h := b.history()
	gone := h.Superseded(false)
	if len(gone) != 1 || gone[0].State != generation.Incomplete {
		t.Fatalf("superseded: %+v", gone)
	}
	must.Do(t, h.Remove(t.Context(), gone[0]))
	b.wantStates("removed", "standard letters current")
}

func TestSuperseded(t *testing.T) {
	b := newBench(t)
	rows := []string{"1\ta\tx", "2\tb\ty"}
	own := b.block.Sources[0].Path
	b.open(rows...)
	b.block.Embed.Use = "words"
	b.open(rows...)
	b.block.Sources[0].Path += ".tsv"
	b.open(rows...)
	b.wantStates("to another source", "standard letters other", "standard words current", "standard words other")
	b.block.Sources[0].Path = own
	b.wantStates("to the first source", "standard letters old", "standard words current", "standard words other")
	h := b.history()
	if some, all := h.Superseded(false), h.Superseded(true); len(some) != 1 || some[0].Embedder != "letters" || len(all) != 2 {
		t.Errorf("superseded: %+v, of all sources: %+v", some, all)
	}

	b.stages.broken = errors.New("no model")
	h = b.history()
	if !errors.Is(h.Doubt, b.stages.broken) || h.Current() != nil || len(h.Superseded(true)) > 0 {
		t.Errorf("without an embedder: %v, %+v, %+v", h.Doubt, h.Current(), h.Superseded(true))
	}
	b.wantStates("without an embedder", "standard letters unknown", "standard words unknown", "standard words unknown")
}

// An index version that another process writes stays.
func TestRemoveWhatIsBeingWritten(t *testing.T) {
	b := newBench(t)
	b.open("1\ta\tx")
	old := b.history().Current().Collection
	b.block.Analyzer = "code"
	b.open("1\ta\tx")
	writer := b.store()
	must.Get(writer.Open(t.Context(), old, sdk.Schema{Dimension: 4, Analyzer: "standard"}))(t)
	must.Do(t, writer.Put(t.Context(), old, []sdk.Entry{{ID: "2", Text: "b", Vector: []float32{0, 1, 0, 0}}}))
	h := b.history()
	if err := h.Remove(t.Context(), h.Superseded(false)[0]); sdk.CodeOf(err) != sdk.CodeTransient {
		t.Errorf("removing it gives %v", err)
	}
	b.wantStates("while it is written", "code letters current", "standard letters old")
	must.Do(t, writer.Commit(t.Context(), old, []byte(`{"source": "x", "complete": true}`)))
	if err := h.Remove(t.Context(), h.Superseded(false)[0]); err != nil {
		t.Error(err)
	}
	b.wantStates("when it is written", "code letters current")
}

// A process that searches an index version of the embedded store can continue to search it.
func TestASearchOutlivesItsGeneration(t *testing.T) {
	b := newBench(t)
	k, _ := b.open("1\ta\tx", "2\tb\ty")
	b.block.Analyzer = "code"
	b.open("1\ta\tx", "2\tb\ty")
	h := b.history()
	for _, g := range h.Superseded(false) {
		must.Do(t, h.Remove(t.Context(), g))
	}
	if n := b.collections(); n != 2 {
		t.Fatalf("%d collections are left", n)
	}
	if got := b.nearest(k, "b"); !slices.Equal(got, []string{"2", "1"}) {
		t.Errorf("it finds %q", got)
	}
	if found, err := k.Prototypes(t.Context(), [][]float32{{0, 1, 0, 0}}, 1); err != nil || found[0][0].Label != "y" {
		t.Errorf("nearest centroid %v, %v", found, err)
	}
}

// A note without today's fields is read, and the entries are used.
func TestNotesOfAnOlderVersion(t *testing.T) {
	b := newBench(t)
	b.open("1\ta\tx")
	b.rewrite(func(note map[string]any) {
		for _, key := range []string{"path", "embedder", "config", "analyzer", "built", "changed"} {
			delete(note, key)
		}
	})
	b.wantStates("as it was", "  current")
	if _, embedded := b.open("1\ta\tx", "2\tb\ty"); !slices.Equal(embedded, []string{"b"}) {
		t.Errorf("embedded %q", embedded)
	}
	b.wantStates("after a change", "standard letters current")
	b.block.Sources[0].Path += ".tsv"
	b.open("1\ta\tx")
	if n := len(b.history().Superseded(false)); n != 0 {
		t.Errorf("%d of another source are superseded", n)
	}
}

func TestWhatIsNoGeneration(t *testing.T) {
	b := newBench(t)
	b.open("1\ta\tx")
	before := b.collections()
	store := b.store()
	good := `{"source": "x", "complete": true}`
	for name, note := range map[string]string{
		"k-0123456789ab":              "a note of somebody else's",
		"k-1123456789ab":              `{"source": "x"}`,
		"k-2123456789ab":              "",
		"k-3123456789ab-labels":       good,
		"k-4123456789AB":              good,
		"k-5123456789":                good,
		"k-6123456789abc":             good,
		"k-g123456789ab":              good,
		"kk-7123456789ab":             good,
		"k":                           good,
		"racflow":                     good,
		"k-8123456789ab-0123456789ab": good,
	} {
		must.Get(store.Open(t.Context(), name, sdk.Schema{Dimension: 4}))(t)
		must.Do(t, store.Commit(t.Context(), name, []byte(note)))
	}
	b.wantStates("beside collections of others", "standard letters current")
	if n := b.collections(); n != before+12 {
		t.Errorf("%d collections", n)
	}
}

// removed is a store whose collections are removed at the next call of a kind, as if by another process.
type removed struct {
	generation.Store
	at *string
}

func (r removed) gone(ctx context.Context, call string) error {
	if *r.at != call {
		return nil
	}
	*r.at = ""
	all, err := r.List(ctx)
	for _, c := range all {
		err = errors.Join(err, r.Drop(ctx, c.Name))
	}
	return errors.Join(err, sdk.Invalid(errors.New("it is gone")))
}

func (r removed) Scan(ctx context.Context, collection string, s sdk.Scan) (sdk.Page, error) {
	if err := r.gone(ctx, "scan"); err != nil {
		return sdk.Page{}, err
	}
	return r.Store.Scan(ctx, collection, s)
}

func (r removed) Open(ctx context.Context, collection string, s sdk.Schema) (sdk.Collection, error) {
	if err := r.gone(ctx, "open"); err != nil {
		return sdk.Collection{}, err
	}
	return r.Store.Open(ctx, collection, s)
}

func (r removed) Commit(ctx context.Context, collection string, note []byte) error {
	if err := r.gone(ctx, "commit"); err != nil {
		return err
	}
	return r.Store.Commit(ctx, collection, note)
}

// If the holder of an edition removes it while another process opens it again, or before that process holds it, the
// edition is reported as removed. It can then be built again.
func TestEditionThatIsRemoved(t *testing.T) {
	b := newBench(t)
	b.open("1\ta\tx", "2\tb\ty")
	at := ""
	b.stages.wrap = func(s generation.Store) generation.Store { return removed{s, &at} }
	open := func() (*knowledge.Knowledge, error) {
		return knowledge.Open(t.Context(), b.block, b.stages, knowledge.Options{Edition: true})
	}
	must.Get(open())(t)
	at = "scan"
	if _, err := open(); !errors.Is(err, generation.ErrRemoved) || !strings.Contains(err.Error(), "it is gone") {
		t.Errorf("while it was removed: %v", err)
	}
	for _, call := range []string{"open", "commit"} {
		k := must.Get(open())(t)
		at = call
		if err := k.Hold(t.Context(), "somebody"); !errors.Is(err, generation.ErrRemoved) || !strings.Contains(err.Error(), "it is gone") {
			t.Errorf("at %s, before it was held: %v", call, err)
		}
	}
	must.Do(t, must.Get(open())(t).Hold(t.Context(), "somebody"))
}
