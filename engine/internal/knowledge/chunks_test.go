package knowledge_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/engine/internal/source/document"

	"github.com/racflow/racflow/engine/internal/knowledge/generation"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// words cuts at spaces and line ends. It records which documents it cut.
type words struct {
	fingerprint string
	cut         []string
	refuses     string // a document
}

func (w *words) Fingerprint() string { return w.fingerprint }

func (w *words) Chunk(_ context.Context, documents []sdk.Document) ([][]sdk.Chunk, error) {
	lists, failed := make([][]sdk.Chunk, len(documents)), sdk.RowErrors{}
	for i, d := range documents {
		if d.ID == w.refuses {
			failed[i] = errors.New("no words")
			continue
		}
		w.cut = append(w.cut, d.ID)
		at := 0
		for word := range strings.FieldsFuncSeq(d.Text, func(r rune) bool { return r == ' ' || r == '\n' || r == '\r' }) {
			at += strings.Index(d.Text[at:], word)
			lists[i] = append(lists[i], sdk.Chunk{Start: at, End: at + len(word), Meta: sdk.Meta{"headings": "h"}})
			at += len(word)
		}
	}
	if len(failed) > 0 {
		return lists, failed
	}
	return lists, nil
}

// shelf is a knowledge over a folder that a test changes.
type shelf struct {
	*bench
	dir     string
	chunker *words
}

func newShelf(t *testing.T, files map[string]string) *shelf {
	b := newBench(t)
	s := &shelf{bench: b, dir: filepath.Join(t.TempDir(), "docs"), chunker: &words{}}
	b.stages.chunker = s.chunker
	b.block.Sources[0] = pipeline.Source{Path: s.dir, Documents: &document.Set{Path: s.dir, Max: 1000}}
	b.block.Chunk = &pipeline.Stage{Block: "chunk", Use: "words"}
	s.write(files)
	return s
}

// write writes files; empty content removes a file.
func (s *shelf) write(files map[string]string) {
	s.t.Helper()
	for name, content := range files {
		path := filepath.Join(s.dir, filepath.FromSlash(name))
		if content == "" {
			must.Do(s.t, os.Remove(path))
			continue
		}
		must.Do(s.t, os.MkdirAll(filepath.Dir(path), 0o750))
		put(s.t, path, content)
	}
}

// look opens the knowledge. It returns which documents were cut and which passages were embedded.
func (s *shelf) look(o knowledge.Options) (k *knowledge.Knowledge, cut, embedded []string) {
	s.t.Helper()
	s.chunker.cut, s.embedder.passages = nil, nil
	k = must.Get(knowledge.Open(s.t.Context(), s.block, s.stages, o))(s.t)
	slices.Sort(s.embedder.passages)
	return k, s.chunker.cut, s.embedder.passages
}

// ids returns the ids of all entries of a knowledge.
func ids(t *testing.T, k *knowledge.Knowledge) []string {
	t.Helper()
	var all []string
	must.Do(t, k.Entries(t.Context(), sdk.Scan{}, func(e sdk.Entry) { all = append(all, e.ID) }))
	slices.Sort(all)
	return all
}

var counts = cmpopts.IgnoreFields(knowledge.BuildReport{}, "Name", "Embedder", "Store", "Invalid")

func TestChunksAreKeptInStep(t *testing.T) {
	s := newShelf(t, map[string]string{"a.txt": "a bb\nccc", "sub/b.md": "# d", "sub/#1.txt": "dd"})
	steps := []struct {
		name   string
		files  map[string]string
		cut    []string
		words  []string
		ids    []string
		report knowledge.BuildReport
	}{
		{"first build", nil, []string{"a.txt", "sub/#1.txt", "sub/b.md"}, []string{"#", "a", "bb", "ccc", "d", "dd"},
			[]string{"a.txt#0", "a.txt#1", "a.txt#2", "sub/#1.txt#0", "sub/b.md#0", "sub/b.md#1"},
			knowledge.BuildReport{Documents: 3, Entries: 6, Added: 6}},
		{"nothing changed", nil, nil, nil,
			[]string{"a.txt#0", "a.txt#1", "a.txt#2", "sub/#1.txt#0", "sub/b.md#0", "sub/b.md#1"},
			knowledge.BuildReport{Documents: 3, Entries: 6, Unchanged: true}},
		{"a longer, a shorter, a new one", map[string]string{"a.txt": "a", "sub/b.md": "# d c", "n.txt": "b"},
			[]string{"a.txt", "n.txt", "sub/b.md"}, []string{"#", "a", "b", "c", "d"},
			[]string{"a.txt#0", "n.txt#0", "sub/#1.txt#0", "sub/b.md#0", "sub/b.md#1", "sub/b.md#2"},
			knowledge.BuildReport{Documents: 4, Entries: 6, Added: 2, Changed: 3, Removed: 2}},
		{"one is gone, one is empty, one is no text", map[string]string{"a.txt": "", "n.txt": " \n", "sub/b.md": "\x00"}, nil, nil,
			[]string{"sub/#1.txt#0"},
			knowledge.BuildReport{Documents: 2, Entries: 1, Removed: 5, InvalidCount: 1}},
		{"the fault is told again", nil, nil, nil, []string{"sub/#1.txt#0"},
			knowledge.BuildReport{Documents: 2, Entries: 1, InvalidCount: 1}},
		{"it is text again", map[string]string{"sub/b.md": "a"}, []string{"sub/b.md"}, []string{"a"}, []string{"sub/#1.txt#0", "sub/b.md#0"},
			knowledge.BuildReport{Documents: 3, Entries: 2, Added: 1}},
	}
	for _, step := range steps {
		s.write(step.files)
		planned, _, embedded := s.look(knowledge.Options{Plan: true})
		if len(embedded) > 0 {
			t.Errorf("%s: the plan embedded %q", step.name, embedded)
		}
		k, cut, embedded := s.look(knowledge.Options{})
		must.Equal(t, step.name+": documents cut", step.cut, cut, cmpopts.EquateEmpty())
		must.Equal(t, step.name+": embedded", step.words, embedded, cmpopts.EquateEmpty())
		must.Equal(t, step.name+": entries", step.ids, ids(t, k))
		for what, got := range map[string]knowledge.BuildReport{"plan": planned.Report, "report": k.Report} {
			if diff := cmp.Diff(step.report, got, counts, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: %s: %s", step.name, what, diff)
			}
		}
	}
}

func TestChunksKnowTheirPlace(t *testing.T) {
	s := newShelf(t, map[string]string{"a.md": "# Title\r\n\r\nbbb\n", "p.html": "<title>Page</title><p>aaa<p>c"})
	k, _, _ := s.look(knowledge.Options{})
	ranking := sdk.Ranking{Search: sdk.Search{Mode: sdk.ModeDense, NumCandidates: 1, Texts: true}, Fusion: sdk.Fusion{Method: "weighted", DenseWeight: 1}, TopK: 1}
	for query, want := range map[string]sdk.Candidate{
		"b": {ID: "a.md#2", Text: "bbb", Meta: sdk.Meta{"path": "a.md", "title": "Title", "format": "markdown", "headings": "h",
			"document": "a.md", "start": 11.0, "end": 14.0, "first_line": 3.0, "last_line": 3.0}},
		"a": {ID: "p.html#0", Text: "aaa", Meta: sdk.Meta{"path": "p.html", "title": "Page", "format": "html", "headings": "h",
			"document": "p.html", "start": 0.0, "end": 3.0}},
	} {
		found, _, err := k.Retrieve(t.Context(), ranking, []sdk.Query{{Text: query}})
		must.Do(t, err)
		if diff := cmp.Diff(want, found[0][0], cmpopts.IgnoreFields(sdk.Candidate{}, "Score", "Dense", "Lexical")); diff != "" {
			t.Error(diff)
		}
	}
}

func TestAnotherChunkerIsAnotherGeneration(t *testing.T) {
	s := newShelf(t, map[string]string{"a.txt": "a b"})
	first, _, _ := s.look(knowledge.Options{})
	one, _ := first.Generation()
	s.chunker.fingerprint = "new"
	second, cut, _ := s.look(knowledge.Options{})
	if two, _ := second.Generation(); one == two || len(cut) != 1 {
		t.Errorf("collections %s and %s, %q cut", one, two, cut)
	}
	h, err := generation.List(t.Context(), s.block, s.stages)
	if err != nil || len(h.Generations) != 2 {
		t.Fatalf("%d generations, %v", len(h.Generations), err)
	}
	if g := h.Generations[0]; !g.Current || g.Chunker != "words" || g.Documents != 1 || g.Entries != 2 {
		t.Errorf("the current generation: %+v", g)
	}
	// Without a chunker, a document is one entry.
	s.block.Chunk = nil
	whole, _, embedded := s.look(knowledge.Options{})
	if diff := cmp.Diff([]string{"a.txt"}, ids(t, whole)); diff != "" || !slices.Equal(embedded, []string{"a b"}) {
		t.Errorf("%s; embedded %q", diff, embedded)
	}
	s.write(map[string]string{"a.txt": " ", "b.txt": "b"})
	whole, _, _ = s.look(knowledge.Options{})
	if diff := cmp.Diff(knowledge.BuildReport{Documents: 2, Entries: 1, Added: 1, Removed: 1}, whole.Report, counts, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

// If one chunk or document fails, the others stay as they are, and the failed one is tried again.
func TestChunksThatAreRefused(t *testing.T) {
	s := newShelf(t, map[string]string{"a.txt": "a unreadable b", "b.txt": "c", "c.txt": "d"})
	s.embedder.strict, s.chunker.refuses = true, "c.txt"
	for range 2 {
		k, cut, _ := s.look(knowledge.Options{})
		var faults []string
		for _, f := range k.Report.Invalid {
			faults = append(faults, strings.TrimPrefix(f.String(), s.dir+string(filepath.Separator)))
		}
		if diff := cmp.Diff([]string{"a.txt: chunk 1: the text is unreadable", "c.txt: cut into chunks: no words"}, faults); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"a.txt#0", "a.txt#2", "b.txt#0"}, ids(t, k)); diff != "" || k.Report.Entries != 3 {
			t.Errorf("%d entries, %s", k.Report.Entries, diff)
		}
		if !slices.Contains(cut, "a.txt") {
			t.Errorf("only %q were tried again", cut)
		}
	}
	s.embedder.strict, s.chunker.refuses = false, ""
	k, _, _ := s.look(knowledge.Options{})
	if got := ids(t, k); len(got) != 5 || k.Report.InvalidCount != 0 || k.Report.Entries != 5 {
		t.Errorf("after the cure: %q, %+v", got, k.Report)
	}
	s.chunker.refuses = "a.txt"
	s.write(map[string]string{"a.txt": "a", "b.txt": "", "c.txt": ""})
	var source *generation.SourceError
	if _, err := knowledge.Open(t.Context(), s.block, s.stages, knowledge.Options{}); !errors.As(err, &source) || !strings.Contains(err.Error(), "no document of") {
		t.Errorf("nothing usable gave %v", err)
	}
}

// Rows of a file and of standard input are chunked, too.
func TestRowsAreCut(t *testing.T) {
	s := newShelf(t, nil)
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	s.block.Sources[0] = pipeline.Source{Path: path, Form: source.Form{Format: source.JSONL}, ID: "id", Text: "text", Label: "label"}
	rows := `{"id":"x","text":"a b","label":"l","kind":"k"}` + "\n" + `{"text":"c"}` + "\n" + `{"id":"y"}` + "\n"
	put(t, path, rows)
	k, _, embedded := s.look(knowledge.Options{})
	if diff := cmp.Diff(knowledge.BuildReport{Documents: 2, Entries: 3, Added: 3, InvalidCount: 1}, k.Report, counts, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	if !slices.Equal(embedded, []string{"a", "b", "c"}) || !slices.Equal(k.Labels, []string{"l"}) || len(ids(t, k)) != 3 {
		t.Errorf("embedded %q, labels %q, entries %q", embedded, k.Labels, ids(t, k))
	}
	must.Do(t, os.WriteFile(path, []byte(strings.Replace(rows, "a b", "a d", 1)), 0o600))
	if _, cut, embedded := s.look(knowledge.Options{}); !slices.Equal(cut, []string{"x"}) || !slices.Equal(embedded, []string{"a", "d"}) {
		t.Errorf("a changed row: cut %q, embedded %q", cut, embedded)
	}
	s.block.Sources[0].Path = "-"
	if k, _, embedded := s.look(knowledge.Options{Stdin: strings.NewReader(rows)}); !slices.Equal(embedded, []string{"a", "b", "c"}) || k.Report.Entries != 3 {
		t.Errorf("standard input: embedded %q, %+v", embedded, k.Report)
	}
}

// A learning embedder learns from the chunks.
func TestFitToChunks(t *testing.T) {
	s := newShelf(t, map[string]string{"a.txt": "a b", "b.txt": "c"})
	s.embedder.fits = true
	if _, _, embedded := s.look(knowledge.Options{}); s.embedder.fitted != 3 || len(embedded) != 3 {
		t.Errorf("fitted to %d, embedded %q", s.embedder.fitted, embedded)
	}
	s.write(map[string]string{"b.txt": "d"})
	if _, _, embedded := s.look(knowledge.Options{}); s.embedder.fitted != 3 || !slices.Equal(embedded, []string{"d"}) {
		t.Errorf("fitted to %d, embedded %q", s.embedder.fitted, embedded)
	}
}

func TestTexts(t *testing.T) {
	s := newShelf(t, map[string]string{"a.txt": "a b", "b.bin": "\x00"})
	var texts []string
	r, err := knowledge.BuildTexts(t.Context(), s.block, s.stages, nil, func(text string) { texts = append(texts, text) })
	if err != nil || !slices.Equal(texts, []string{"a", "b"}) || r.Documents != 1 {
		t.Errorf("got %q, %+v, %v", texts, r, err)
	}
}
