package local

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/plugins/internal/store/segment"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

var ctx = context.Background()

// openStore opens a store on a folder; it is closed when the test ends.
func openStore(t testing.TB, dir string) *store {
	t.Helper()
	s, err := open(ctx, sdk.Setup{StateDir: dir, Log: slog.New(slog.DiscardHandler)}, config{K1: 1.2, B: 0.75, Sync: true})
	must.Do(t, err)
	t.Cleanup(func() { s.(*store).Close() })
	return s.(*store)
}

// openSmall opens the collection "c" with vectors of two dimensions.
func openSmall(t testing.TB, dir string) *store {
	t.Helper()
	s := openStore(t, dir)
	mustOpen(t, s, 2)
	return s
}

func mustOpen(t testing.TB, s *store, dimension int) sdk.Collection {
	t.Helper()
	c, err := s.Open(ctx, "c", sdk.Schema{Dimension: dimension, Analyzer: "standard"})
	must.Do(t, err)
	return c
}

// commit puts entries into "c" and commits them with a note.
func commit(t testing.TB, s *store, note []byte, entries ...sdk.Entry) {
	t.Helper()
	must.Do(t, s.Put(ctx, "c", entries))
	must.Do(t, s.Commit(ctx, "c", note))
}

func entry(id, text string, vector ...float32) sdk.Entry {
	return sdk.Entry{ID: id, Text: text, Label: "label of " + id, Vector: vector}
}

// everything returns all entries of "c", with all of their parts.
func everything(t testing.TB, s *store) []sdk.Entry {
	t.Helper()
	var all []sdk.Entry
	for after := ""; ; {
		page, err := s.Scan(ctx, "c", sdk.Scan{Texts: true, Vectors: true, After: after})
		must.Do(t, err)
		all = append(all, page.Entries...)
		if after = page.Next; after == "" {
			return all
		}
	}
}

func ids(entries []sdk.Entry) string {
	var all []string
	for _, e := range entries {
		all = append(all, e.ID)
	}
	return strings.Join(all, " ")
}

func hitIDs(hits []sdk.Hit) string {
	var all []string
	for _, h := range hits {
		all = append(all, h.ID)
	}
	return strings.Join(all, " ")
}

func logSize(t testing.TB, dir string) int64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(dir, "c", "log"))
	must.Do(t, err)
	return info.Size()
}

// putFrames returns the number of rows of each put frame in the log of "c".
func putFrames(t testing.TB, dir string) (rows []int) {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "c", "log"))
	must.Do(t, err)
	defer f.Close()
	frames := segment.NewFrameReader(f, int64(segment.LogHeader), logSize(t, dir))
	for {
		fr, err := frames.Next()
		if err == io.EOF {
			return rows
		}
		must.Do(t, err)
		if fr.Kind == segment.FramePut {
			rows = append(rows, int(binary.LittleEndian.Uint32(fr.Payload)))
		}
	}
}

func TestRefusals(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	s := openSmall(t, t.TempDir())
	commit(t, s, nil, entry("a", "one", 1, 0))
	_, err := s.Open(ctx, "dense", sdk.Schema{Dimension: 2})
	must.Do(t, err)
	_, err = s.Open(ctx, "lexical", sdk.Schema{Analyzer: "code"})
	must.Do(t, err)
	openErr := func(name string, schema sdk.Schema) error { _, err := s.Open(ctx, name, schema); return err }
	putErr := func(e sdk.Entry) error { return s.Put(ctx, "c", []sdk.Entry{entry("b", "two", 1, 0), e}) }
	searchErr := func(name string, mode sdk.Mode, vector ...float32) error {
		_, err := s.Search(ctx, name, sdk.Search{Mode: mode, NumCandidates: 1}, []sdk.Query{{Text: "one", Vector: vector}})
		return err
	}
	tests := []struct {
		name string
		err  error
		want string
	}{
		{"dimension", openErr("c", sdk.Schema{Dimension: 3, Analyzer: "standard"}), "vectors of 2 dimensions and the embedder gives 3"},
		{"analyzer", openErr("c", sdk.Schema{Dimension: 2, Analyzer: "code"}), `analyzer "standard", not "code"`},
		{"unknown analyzer", openErr("d", sdk.Schema{Dimension: 2, Analyzer: "klingon"}), "standard"},
		{"no name", openErr("", sdk.Schema{}), "name"},
		{"huge dimension", openErr("d", sdk.Schema{Dimension: 1 << 20}), "65536"},
		{"not open", s.Put(ctx, "other", nil), `"other" is not open`},
		{"search not open", searchErr("other", sdk.ModeDense, 1, 0), "not open"},
		{"no id", putErr(sdk.Entry{Vector: []float32{1, 0}}), "entry 1 of the batch has no id"},
		{"vector too long", putErr(entry("x", "", 1, 0, 0)), `"x" has a vector of 3`},
		{"no vector", putErr(entry("x", "")), "0 dimensions"},
		{"NaN", putErr(entry("x", "", nan, 0)), "NaN"},
		{"infinity", putErr(entry("x", "", inf, 0)), "infinity"},
		{"meta", putErr(sdk.Entry{ID: "x", Vector: []float32{1, 0}, Meta: sdk.Meta{"k": 1}}), "metadata"},
		{"mode", searchErr("c", "fuzzy", 1, 0), "fuzzy"},
		{"query too short", searchErr("c", sdk.ModeDense, 1), "row 0: the query's vector has 1 dimensions"},
		{"query without vector", searchErr("c", sdk.ModeHybrid), "no vector"},
		{"query with NaN", searchErr("c", sdk.ModeDense, nan, 1), "NaN"},
		{"no lexical leg", searchErr("dense", sdk.ModeHybrid, 1, 0), `use mode "dense"`},
		{"no vectors", searchErr("lexical", sdk.ModeDense, 1, 0), `use mode "lexical"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.err == nil || !strings.Contains(tt.err.Error(), tt.want) {
				t.Errorf("error %v, want %q in it", tt.err, tt.want)
			}
		})
	}
	if got := ids(everything(t, s)); got != "a" {
		t.Errorf("refused batches left %q", got)
	}
}

func TestConfig(t *testing.T) {
	stage := Stage()
	for config, want := range map[string]string{
		`{"k1": -1}`: "k1", `{"b": 1.5}`: "b", `{}`: "path", `{"path": "x", "depth": 1}`: "depth",
	} {
		if _, err := stage.Open(ctx, sdk.Setup{}, []byte(config)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", config, err)
		}
	}
	dir := t.TempDir()
	s, err := stage.Open(ctx, sdk.Setup{StateDir: t.TempDir()}, fmt.Appendf(nil, `{"path": %q}`, dir))
	must.Do(t, err)
	must.Do(t, put(s.(*store), "Ünit/A"))
	if _, err := os.Stat(filepath.Join(dir, "%C3%9Cnit%2F%41", "log")); err != nil {
		t.Error(err)
	}
}

func put(s *store, name string) error {
	if _, err := s.Open(ctx, name, sdk.Schema{}); err != nil {
		return err
	}
	if err := s.Put(ctx, name, []sdk.Entry{{ID: "a"}}); err != nil {
		return err
	}
	return s.Commit(ctx, name, nil)
}

func TestFolder(t *testing.T) {
	names := []string{"utterances", "..", ".", "a.b", "A", "a", "a/b", "a%2Fb", "ü", "con trol\x00"}
	seen := map[string]string{}
	for _, name := range names {
		f := folder(name)
		if f != filepath.Base(f) || strings.HasPrefix(f, ".") {
			t.Errorf("%q becomes %q", name, f)
		}
		if other, ok := seen[strings.ToLower(f)]; ok {
			t.Errorf("%q and %q share %q", name, other, f)
		}
		seen[strings.ToLower(f)] = name
	}
}

func TestRewrittenLogStaysBounded(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	s.config.Sync = false
	mustOpen(t, s, 2)
	r := rand.New(rand.NewPCG(1, 2))
	text := strings.Repeat("word ", 200)
	for round := range 60 {
		var batch []sdk.Entry
		for i := range 100 {
			batch = append(batch, entry(fmt.Sprintf("%03d", i), fmt.Sprint(text, round), r.Float32(), 1))
		}
		commit(t, s, fmt.Append(nil, round), batch...)
		if size := logSize(t, dir); size > 350_000 { // 100 kB live
			t.Fatalf("the log has %d bytes after round %d", size, round)
		}
		if rows := s.collections["c"].now.Load().Rows; rows > 300 {
			t.Fatalf("%d rows in memory after round %d", rows, round)
		}
	}
	want := everything(t, s)
	s.Close()
	s = openSmall(t, dir)
	if diff := cmp.Diff(want, everything(t, s)); diff != "" {
		t.Error(diff)
	}
	if c := mustOpen(t, s, 2); string(c.Note) != "59" {
		t.Errorf("note %q", c.Note)
	}
}

func TestScanGoesOnAfterARewrite(t *testing.T) {
	s := openSmall(t, t.TempDir())
	for i := range 200 {
		must.Do(t, s.Put(ctx, "c", []sdk.Entry{entry(fmt.Sprintf("%03d", i), strings.Repeat("x", 1000), 1, 0)}))
	}
	must.Do(t, s.Commit(ctx, "c", nil))
	page, err := s.Scan(ctx, "c", sdk.Scan{Limit: 150})
	must.Do(t, err)
	before := s.collections["c"].now.Load().ID
	for i := range 140 {
		must.Do(t, s.Delete(ctx, "c", []string{fmt.Sprintf("%03d", i)}))
	}
	commit(t, s, nil, entry("new", "", 1, 0))
	if s.collections["c"].now.Load().ID == before {
		t.Fatal("the log was not rewritten")
	}
	page, err = s.Scan(ctx, "c", sdk.Scan{After: page.Next})
	must.Do(t, err)
	if len(page.Entries) != 51 || page.Entries[0].ID != "150" || page.Entries[50].ID != "new" {
		t.Errorf("second page: %s", ids(page.Entries))
	}
}

func TestLargeBatchesTakeSeveralFrames(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	s.config.Sync = false
	mustOpen(t, s, 2)
	big := strings.Repeat("many words ", 300_000) // 3.3 MB
	var batch []sdk.Entry
	for i := range 8 {
		batch = append(batch, entry(fmt.Sprint(i), big, 1, float32(i)))
	}
	commit(t, s, nil, batch...)
	if n := len(putFrames(t, dir)); n != 3 {
		t.Errorf("%d frames", n)
	}
	s = openSmall(t, dir)
	first, err := s.Scan(ctx, "c", sdk.Scan{Texts: true})
	must.Do(t, err)
	if n := len(first.Entries); n == 0 || n > 6 {
		t.Errorf("a page of %d entries of 3.3 MB each does not fit a message", n)
	}
	all := everything(t, s)
	if ids(all) != "0 1 2 3 4 5 6 7" || !bytes.Equal([]byte(all[7].Text), []byte(big)) {
		t.Error("the batch did not come back")
	}
}
