package local

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/plugins/internal/store/segment"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

var update = flag.Bool("update", false, "write the kept collections anew")

// TestKept reads collections of version 0.1.0: a segment with dense or sparse vectors and one removed row, and a row
// in the log.
func TestKept(t *testing.T) {
	for name, dimension := range map[string]int{"dense": 2, "sparse": 4096} {
		dir, kept := t.TempDir(), filepath.Join("testdata", "0.1.0", name)
		var want []sdk.Entry
		for i := range 5 {
			e := entry(fmt.Sprint(i), fmt.Sprint("word", i, " of all"), make([]float32, dimension)...)
			e.Vector[i%2], e.Vector[dimension-1-i%2] = 0.6, 0.8
			e.Vector, _ = segment.Normalise(nil, e.Vector)
			e.Hash, e.Context, e.Meta = []byte("hash"), "context", sdk.Meta{"n": float64(i), "b": i == 2, "s": "é"}
			want = append(want, e)
		}
		if *update {
			s := openStore(t, dir)
			mustOpen(t, s, dimension)
			commit(t, s, []byte("a note"), want[:4]...)
			must.Do(t, s.Close())
			intoFile(t, dir, dimension)
			s = openStore(t, dir)
			mustOpen(t, s, dimension)
			must.Do(t, s.Delete(ctx, "c", []string{"1"}))
			commit(t, s, []byte("a note"), want[4])
			must.Do(t, s.Close())
			must.Do(t, os.RemoveAll(kept))
			must.Do(t, os.CopyFS(kept, os.DirFS(filepath.Join(dir, "c"))))
			must.Do(t, os.RemoveAll(filepath.Join(dir, "c")))
		}
		want = slices.Delete(want, 1, 2)
		must.Do(t, os.CopyFS(filepath.Join(dir, "c"), os.DirFS(kept)))
		must.Do(t, check(ctx, Location{dir, "c"}))
		s := openStore(t, dir)
		if c := mustOpen(t, s, dimension); string(c.Note) != "a note" {
			t.Errorf("%s: note %q", name, c.Note)
		}
		if diff := cmp.Diff(want, everything(t, s)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
		found := must.Get(s.Search(ctx, "c", sdk.Search{Mode: sdk.ModeHybrid, NumCandidates: 4}, []sdk.Query{{Text: "word3", Vector: want[2].Vector}}))(t)
		if found[0].Dense[0].ID != "3" || hitIDs(found[0].Lexical) != "3" {
			t.Errorf("%s: found %+v", name, found)
		}
	}
}
