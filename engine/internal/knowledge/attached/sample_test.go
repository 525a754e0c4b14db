package attached

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// The sample returns the entries themselves, with vectors of norm 1.
func TestSample(t *testing.T) {
	entries := rows("a", "ab", "c", "cd")
	entries[1].Vector = []float32{30, 30, 0, 0}
	entries[2].Context, entries[2].Meta = "a title", sdk.Meta{"n": 1.5, "s": "x", "b": true}
	entries = append(entries,
		sdk.Entry{ID: "no text", Label: "d", Text: " \n", Vector: []float32{0, 0, 0, 2}},
		sdk.Entry{ID: "no direction", Label: "e", Text: "e", Vector: make([]float32, 4)},
		sdk.Entry{ID: "no label", Text: "aaa", Vector: count("a")},
		sdk.Entry{ID: "twin", Label: "a", Text: "a", Vector: count("a")})
	b := newBench(t, entries...)
	for _, opening := range []string{"read", "kept"} {
		c := b.must()
		if got := strings.Join(c.Labels(), " "); got != "a c d e" {
			t.Errorf("%s: labels %q", opening, got)
		}
		texts, vectors := all(t, c.Pages(t.Context(), sdk.Scan{Texts: true})), all(t, c.Pages(t.Context(), sdk.Scan{Vectors: true}))
		if got := ids(texts); got != "000 001 002 003 no direction no label twin" {
			t.Errorf("%s: with texts %q", opening, got)
		}
		if got := ids(vectors); got != "000 001 002 003 no label no text twin" {
			t.Errorf("%s: with vectors %q", opening, got)
		}
		if got := ids(all(t, c.Pages(t.Context(), sdk.Scan{Labels: []string{"c", "d"}}))); got != "002 003 no text" {
			t.Errorf("%s: of labels %q", opening, got)
		}
		if d := cmp.Diff(entries[2], texts[2], cmpopts.IgnoreFields(sdk.Entry{}, "Vector", "Hash")); d != "" || texts[2].Vector != nil {
			t.Errorf("%s: (-want +got):\n%s", opening, d)
		}
		if vectors[1].Text != "" || cmp.Diff(count("ab"), vectors[1].Vector, cmpopts.EquateApprox(0, 1e-6)) != "" {
			t.Errorf("%s: %+v", opening, vectors[1])
		}
		if string(texts[0].Hash) != string(texts[6].Hash) || string(texts[0].Hash) == string(texts[1].Hash) {
			t.Errorf("%s: twins have hashes %x and %x, another entry %x", opening, texts[0].Hash, texts[6].Hash, texts[1].Hash)
		}
		near := must.Get(c.Nearest(t.Context(), [][]float32{{0, 0, 1, 0}, {0, 0, 0, 0}}, 2))(t)
		must.Equal(t, opening+": nearest", [][]sdk.Candidate{{{Label: "c"}, {Label: "a"}}, nil}, near, cmpopts.IgnoreFields(sdk.Candidate{}, "ID", "Score", "Dense", "Lexical"))
		if got := ids(all(t, c.Whole(t.Context(), sdk.Scan{Texts: true}))); got != ids(texts) {
			t.Errorf("%s: whole %q", opening, got)
		}
		if want := (30*math.Sqrt2 + 2 + 5) / 7; math.Abs(c.Norm()-want) > 1e-5 {
			t.Errorf("%s: the mean norm is %v, want %v", opening, c.Norm(), want)
		}
		r := c.Report()
		must.Equal(t, opening+": size of the sample, whether it is whole and kept", []any{8, true, opening == "kept"}, []any{r.Sample, r.Whole, r.Kept})
		if len(r.Notes) != 4 || !strings.HasPrefix(r.Notes[1], "1 entry of the sample without a text") || !strings.HasSuffix(r.Notes[3], "from 1 to 42.4.") {
			t.Errorf("%s: notes %q", opening, r.Notes)
		}
	}
}

// A stored sample is used until it no longer represents the collection. It is never trusted if its file has
// changed.
func TestKept(t *testing.T) {
	file := func(b *bench, ending string) string {
		found, _ := filepath.Glob(filepath.Join(b.dir, "k-*"+ending))
		if len(found) != 1 {
			b.t.Fatalf("files %v", found)
		}
		return found[0]
	}
	change := func(b *bench, ending string, do func([]byte) []byte) {
		path := file(b, ending)
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, do(text), 0o600)
		}
		if err != nil {
			b.t.Fatal(err)
		}
	}
	refresh := false
	for name, c := range map[string]struct {
		change func(*bench)
		read   int // entries that the second opening reads
	}{
		"nothing":            {func(*bench) {}, 0},
		"a fifth more":       {func(b *bench) { b.theirs.Change("1", many(120)...) }, 0},
		"a fifth less":       {func(b *bench) { b.theirs.Change("1", many(80)...) }, 0},
		"more than that":     {func(b *bench) { b.theirs.Change("1", many(121)...) }, 121},
		"less than that":     {func(b *bench) { b.theirs.Change("1", many(79)...) }, 79},
		"another collection": {func(b *bench) { b.theirs.Change("2", many(100)...) }, 100},
		"asked for":          {func(*bench) { refresh = true }, 100},
		"another config":     {func(b *bench) { b.block.Store.Config.Public = json.RawMessage(`{"collection":"alias"}`) }, 100},
		"rows are cut":       {func(b *bench) { change(b, ".rows", func(t []byte) []byte { return t[:len(t)-1] }) }, 100},
		"rows have a flaw":   {func(b *bench) { change(b, ".rows", func(t []byte) []byte { t[len(t)/2] ^= 1; return t }) }, 100},
		"rows are gone":      {func(b *bench) { _ = os.Remove(file(b, ".rows")) }, 100},
		"no JSON":            {func(b *bench) { change(b, ".json", func([]byte) []byte { return []byte("{") }) }, 100},
		"another layout": {func(b *bench) {
			change(b, ".json", func(t []byte) []byte { return []byte(strings.Replace(string(t), `"layout":3`, `"layout":2`, 1)) })
		}, 100},
		"other fields": {func(b *bench) {
			change(b, ".json", func(t []byte) []byte { return []byte(strings.Replace(string(t), "content", "body", 1)) })
		}, 100},
		"other reasons": {func(b *bench) {
			change(b, ".json", func(t []byte) []byte {
				return []byte(strings.Replace(string(t), "the only text", "named in the file", 1))
			})
		}, 0},
		"sizes that are wrong": {func(b *bench) {
			change(b, ".json", func(t []byte) []byte { return []byte(strings.Replace(string(t), `"rows":`, `"rows":9`, 1)) })
		}, 100},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, many(100)...)
			b.must()
			_, before := b.theirs.Calls()
			refresh = false
			c.change(b)
			second := b.must(func(o *Options) { o.Refresh = refresh })
			_, after := b.theirs.Calls()
			if after-before != c.read || second.Report().Kept != (c.read == 0) {
				t.Errorf("it read %d entries, want %d; kept: %t", after-before, c.read, second.Report().Kept)
			}
			b.must()
			if _, again := b.theirs.Calls(); again != after {
				t.Errorf("a third opening read %d entries", again-after)
			}
			if left, _ := filepath.Glob(filepath.Join(b.dir, unfinished+"*")); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// A process that opens a moved collection again can detect the change, even if the rows of the sample are the same.
// Otherwise it would open the collection again and again.
func TestMoved(t *testing.T) {
	for name, change := range map[string]func(*bench){
		"number": func(b *bench) { b.theirs.Count(150) },
		"words":  func(b *bench) { b.theirs.Words(true) },
	} {
		b := newBench(t, many(100)...)
		first := b.must()
		change(b)
		if moved, err := first.Moved(t.Context()); !moved || err != nil {
			t.Errorf("%s: moved %t, %v", name, moved, err)
		}
		second := b.must()
		if moved, err := second.Moved(t.Context()); moved || err != nil {
			t.Errorf("%s: moved again: %t, %v", name, moved, err)
		}
		if first.Identity() == second.Identity() {
			t.Errorf("%s: both are %s", name, first.Identity())
		}
	}
}

// Only norms other than 1 count; answers depend on them.
func TestNorms(t *testing.T) {
	entries := many(30)
	b := newBench(t, entries...)
	plain := b.must()
	entries[29].Vector[0] *= 1.001
	b.theirs.Change("1", entries...)
	refresh := func(o *Options) { o.Refresh = true }
	if about := b.must(refresh); plain.Norm() != 0 || about.Norm() != 0 || len(about.Report().Notes) != 1 {
		t.Errorf("norms %v and %v: %q", plain.Norm(), about.Norm(), about.Report().Notes)
	}
	for d := range entries[29].Vector {
		entries[29].Vector[d] = 4 * entries[28].Vector[d]
	}
	b.theirs.Change("1", entries...)
	four := b.must(refresh)
	for d := range entries[29].Vector {
		entries[29].Vector[d] *= 2
	}
	b.theirs.Change("1", entries...)
	if eight := b.must(refresh); math.Abs(four.Norm()-33./30) > 1e-6 || eight.sample.Digest != four.sample.Digest || eight.Identity() == four.Identity() {
		t.Errorf("norms %v and %v; identities %s and %s", four.Norm(), eight.Norm(), four.Identity(), eight.Identity())
	}
}

// Metadata counts towards the bytes of a sample, which are in memory.
func TestMetadataCounts(t *testing.T) {
	entries := rows("a", "b", "c")
	for i := range entries {
		entries[i].Meta = sdk.Meta{"page": strings.Repeat("x", 1000)}
	}
	b := newBench(t, entries...)
	b.bounds.bytes = 2500
	if r := b.must().Report(); r.Sample != 2 || r.Whole {
		t.Errorf("%+v", r)
	}
}

// A process with a sample open continues to read it after another process replaces it.
func TestReplacedMeanwhile(t *testing.T) {
	b := newBench(t, rows("a", "b")...)
	first := b.must()
	b.theirs.Change("2", rows("c", "d", "c")...)
	second := b.must()
	if got := len(all(t, first.Pages(t.Context(), sdk.Scan{}))); got != 2 || strings.Join(first.Labels(), "") != "ab" {
		t.Errorf("the first one has %d entries", got)
	}
	if got := len(all(t, second.Pages(t.Context(), sdk.Scan{}))); got != 3 || first.Identity() == second.Identity() {
		t.Errorf("the second one has %d entries; %s, %s", got, first.Identity(), second.Identity())
	}
	if moved, err := first.Moved(t.Context()); !moved || err != nil {
		t.Errorf("moved %t, %v", moved, err)
	}
	if moved, err := second.Moved(t.Context()); moved || err != nil {
		t.Errorf("moved %t, %v", moved, err)
	}
	b.theirs.Drop()
	if moved, err := second.Moved(t.Context()); moved || err == nil {
		t.Errorf("dropped: moved %t, %v", moved, err)
	}
}

func TestBounds(t *testing.T) {
	entries := many(100)
	size := sizeOf(entries[0])
	for name, c := range map[string]struct {
		bounds bounds
		want   int
	}{
		"entries":            {bounds{30, maxBytes}, 30},
		"all":                {bounds{100, maxBytes}, 100},
		"bytes":              {bounds{100, size}, 1},
		"not even one entry": {bounds{100, size - 1}, 0},
	} {
		b := newBench(t, entries...)
		b.bounds = c.bounds
		got, err := b.open()
		if c.want == 0 {
			if err == nil || !strings.Contains(err.Error(), "no entries that can be read") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || got.sample.Entries != c.want || got.sample.Whole != (c.want == 100) {
			t.Fatalf("%s: %+v, %v", name, got, err)
		}
		var whole error
		for _, err := range got.Whole(t.Context(), sdk.Scan{Texts: true}) {
			whole = err
		}
		if got.sample.Whole != (whole == nil) || whole != nil && !strings.Contains(whole.Error(), "collection theirs has 100 entries, of which racflow reads no more than 50000 entries: search it") {
			t.Errorf("%s: the whole of it: %v", name, whole)
		}
		if e := got.Scale(rule.Extent{Entries: c.want, Tokens: 10 * c.want}); e.Entries != 100 || e.Tokens != 1000 {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// Without a folder nothing is stored, and everything works.
func TestNoFolder(t *testing.T) {
	b := newBench(t, many(10)...)
	b.dir = ""
	if got := all(t, b.must().Pages(t.Context(), sdk.Scan{Texts: true})); len(got) != 10 {
		t.Errorf("%d entries", len(got))
	}
	if _, scanned := b.theirs.Calls(); scanned != 10 {
		t.Errorf("%d entries were read", scanned)
	}
}

func TestReopen(t *testing.T) {
	b := newBench(t, rows("a", "b")...)
	identity := b.must().Identity()
	reopen := func() (*Collection, error) {
		store, err := b.Store(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return Reopen(t.Context(), b.block, store, b.dir, identity)
	}
	c, err := reopen()
	if err != nil || len(all(t, c.Pages(t.Context(), sdk.Scan{}))) != 2 {
		t.Fatal(err)
	}
	b.theirs.Change("1", rows("a", "b", "c")...)
	b.must() // reads another sample
	if c, err = reopen(); err != nil {
		t.Fatal(err)
	}
	for _, err = range c.Pages(t.Context(), sdk.Scan{}) {
		if err == nil || !strings.Contains(err.Error(), "was read again since") {
			t.Errorf("another sample: %v", err)
		}
	}
	if got := len(all(t, c.Whole(t.Context(), sdk.Scan{Texts: true}))); got != 3 {
		t.Errorf("the whole of it has %d entries", got)
	}
	b.theirs.Change("2", rows("a", "b")...)
	if _, err = reopen(); err == nil || !strings.Contains(err.Error(), "another collection stands behind the name theirs") {
		t.Errorf("another collection: %v", err)
	}
}
