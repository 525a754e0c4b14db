package knowledge_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/engine/internal/knowledge/cache"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// pieces cuts after a fixed number of words.
type pieces struct {
	words
	size int
}

func (p *pieces) Fingerprint() string { return fmt.Sprint(p.size) }

func (p *pieces) Chunk(ctx context.Context, documents []sdk.Document) ([][]sdk.Chunk, error) {
	lists, err := p.words.Chunk(ctx, documents)
	for i, list := range lists {
		lists[i] = nil
		for at := 0; at < len(list); at += p.size {
			lists[i] = append(lists[i], sdk.Chunk{Start: list[at].Start, End: list[min(at+p.size, len(list))-1].End})
		}
	}
	return lists, err
}

// keptVectors returns options for a separate cache of vectors.
func keptVectors(t *testing.T) cache.VectorOptions {
	return cache.VectorOptions{Root: t.TempDir(), Limits: cache.Limits{Bytes: 1 << 20}, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
}

// everything returns all entries of a knowledge, with their vectors.
func everything(t *testing.T, k *knowledge.Knowledge) map[string]sdk.Entry {
	t.Helper()
	all := map[string]sdk.Entry{}
	must.Do(t, k.Entries(t.Context(), sdk.Scan{Texts: true, Vectors: true}, func(e sdk.Entry) { all[e.ID] = e }))
	return all
}

// The texts embedded after a change, without and with stored vectors.
func TestVectorsAreKept(t *testing.T) {
	files := map[string]string{"a.md": "a b c d", "b.md": "aa bb", "sub/c.md": "dd cc"}
	size := func(n int) func(*shelf) { return func(s *shelf) { s.stages.chunker = &pieces{size: n} } }
	steps := []struct {
		name          string
		change        func(*shelf)
		without, with int // embedded passages
		known         int // passages with stored vectors, which are not embedded
	}{
		{"first build", func(*shelf) {}, 8, 8, 0},
		{"again", func(*shelf) {}, 0, 0, 0},
		{"a file is renamed", func(s *shelf) { s.write(map[string]string{"b.md": "", "z.md": "aa bb"}) }, 2, 0, 2},
		{"a pattern more is excluded", func(s *shelf) { s.exclude("archive/**") }, 8, 0, 8},
		{"a word is edited", func(s *shelf) { s.write(map[string]string{"a.md": "a b c ddd"}) }, 4, 1, 3},
		{"chunks of two words", size(2), 4, 4, 0},
		{"chunks of three words", size(3), 4, 1, 3}, // "a b c" is new
		{"a second knowledge", func(s *shelf) { s.block.Name = "second" }, 4, 0, 4},
		{"the folder is moved", func(s *shelf) { s.move() }, 4, 0, 4},
		{"another embedder", func(s *shelf) { s.embedder.fingerprint = "another" }, 4, 4, 0},
		{"the first embedder again", func(s *shelf) { s.embedder.fingerprint = "" }, 0, 0, 0},
		{"another store", func(s *shelf) { s.stages.memory = enginetest.Memory() }, 4, 0, 4},
		{"the other embedder there", func(s *shelf) { s.embedder.fingerprint = "another" }, 4, 0, 4},
		{"other arguments of the embedder", func(s *shelf) { s.embed(`{"prefix":"passage: "}`) }, 4, 4, 0},
		{"the first ones, and another store", func(s *shelf) { s.embed(""); s.stages.memory = enginetest.Memory() }, 4, 0, 4},
	}
	var built [2][]map[string]sdk.Entry
	for i, o := range []knowledge.Options{{}, {Vectors: keptVectors(t)}} {
		s := newShelf(t, files)
		s.stages.chunker = &pieces{size: 1}
		for _, step := range steps {
			step.change(s)
			k, _, embedded := s.look(o)
			want, known := step.without, 0
			if i == 1 {
				want, known = step.with, step.known
			}
			if len(embedded) != want || k.Report.Reused != known || step.with+step.known != step.without {
				t.Errorf("%s, %d: embedded %q and knew %d, want %d and %d", step.name, i, embedded, k.Report.Reused, want, known)
			}
			built[i] = append(built[i], everything(t, k))
		}
	}
	for n, step := range steps { // search results are the same, bit by bit
		must.Equal(t, step.name+": without and with kept vectors", built[0][n], built[1][n])
	}
}

func (s *shelf) exclude(pattern string) {
	set := *s.block.Sources[0].Documents
	set.Exclude = append(set.Exclude, pattern)
	s.block.Sources[0].Documents = &set
}

func (s *shelf) embed(config string) {
	s.block.Embed.Config = pipeline.Config{}
	if config != "" {
		s.block.Embed.Config.Identity = []byte(config)
	}
}

// move moves the folder.
func (s *shelf) move() {
	s.t.Helper()
	to := filepath.Join(s.t.TempDir(), "moved")
	must.Do(s.t, os.Rename(s.dir, to))
	set := *s.block.Sources[0].Documents
	set.Path, s.dir, s.block.Sources[0].Path = to, to, to
	s.block.Sources[0].Documents = &set
}

// An enricher's additions are embedded if their block says so.
func TestVectorsOfEnrichedPassages(t *testing.T) {
	e := newEnriched(t, map[string]string{"a.md": "a b", "b.md": "c"})
	o := knowledge.Options{Vectors: keptVectors(t)}
	look := func(name string, want int) {
		t.Helper()
		if _, _, embedded := e.shelf.look(o); len(embedded) != want {
			t.Errorf("%s: embedded %q, want %d", name, embedded, want)
		}
	}
	look("first build", 3)
	e.write(map[string]string{"b.md": "", "z.md": "c"})
	look("renamed, and the addition names the document", 1)
	e.adder.add = func(p sdk.Passage) sdk.Addition { return sdk.Addition{Terms: []string{strings.ToUpper(p.Text())}} }
	e.stages.memory = enginetest.Memory()
	look("other additions", 3)
	e.write(map[string]string{"z.md": "", "y.md": "c"})
	look("renamed, and the addition is the same", 0)
}

// Vectors that cannot be used again are not stored: vectors of a learning embedder, which depend on
// the whole knowledge, and vectors of a service, which are in the response cache.
func TestVectorsThatAreNotKept(t *testing.T) {
	for name, change := range map[string]func(*shelf){
		"learns":          func(s *shelf) { s.embedder.fits = true },
		"calls a service": func(s *shelf) { s.block.Embed.Info.Network = true },
	} {
		t.Run(name, func(t *testing.T) {
			s, o := newShelf(t, map[string]string{"a.md": "a b"}), knowledge.Options{Vectors: keptVectors(t)}
			change(s)
			for range 2 {
				s.stages.memory = enginetest.Memory()
				if k, _, embedded := s.look(o); len(embedded) != 2 || k.Report.Reused != 0 {
					t.Errorf("embedded %q, knew %d", embedded, k.Report.Reused)
				}
			}
			if kept, err := cache.ReadVectorStats(o.Vectors.Root); err != nil || kept.Files != 0 {
				t.Errorf("kept %+v, %v", kept, err)
			}
		})
	}
}

// A text that the embedder refuses is refused again: no vector is stored for it. Vectors of the
// other texts in its batch are stored.
func TestVectorsOfPartsOfABatch(t *testing.T) {
	b := newBench(t)
	b.embedder.strict = true
	o := knowledge.Options{Vectors: keptVectors(t)}
	must.Do(t, os.WriteFile(b.block.Sources[0].Path, []byte("id\ttext\n1\ta\n2\tunreadable\n3\tb\n"), 0o600))
	for i, want := range []int{2, 0} {
		b.stages.memory, b.embedder.passages = enginetest.Memory(), nil
		k, err := knowledge.Open(t.Context(), b.block, b.stages, o)
		if err != nil || k.Report.InvalidCount != 1 || k.Report.Entries != 2 || len(b.embedder.passages) != want {
			t.Errorf("build %d: %+v, embedded %q, %v", i, k.Report, b.embedder.passages, err)
		}
	}
}
