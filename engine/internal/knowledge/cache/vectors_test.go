package cache

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// openVectors opens the vectors of an embedder with the given options. They must report nothing
// unless reported is given.
func openVectors(t testing.TB, o VectorOptions, embedder string, dimension int, reported *[]string) *Vectors {
	t.Helper()
	if o.Bytes == 0 {
		o.Bytes = 1 << 30
	}
	o.Log = slog.New(slog.NewTextHandler(lines(func(line string) {
		if reported == nil {
			t.Errorf("the log says %s", line)
		} else {
			*reported = append(*reported, line)
		}
	}), nil))
	v := OpenVectors(o, embedder, "embedder "+embedder, dimension)
	t.Cleanup(func() {
		if v != nil && !v.cache.closed {
			v.Close()
		}
	})
	return v
}

// vectorOf returns a vector of a text, with values that no arithmetic reproduces.
func vectorOf(text string, dimension int) []float32 {
	v := make([]float32, dimension)
	for i := range v {
		v[i] = math.Float32frombits(uint32(0x3f000000 + 7919*len(text) + i))
	}
	v[0] = math.Float32frombits(0x80000001) // the largest number below zero
	return v
}

func putVectors(v *Vectors, texts ...string) {
	made := make([][]float32, len(texts))
	for i, text := range texts {
		made[i] = vectorOf(text, v.dimension)
	}
	v.Put(texts, made)
}

// wantVectors checks which of some texts have a vector, and that each is the text's own vector, bit
// by bit.
func wantVectors(t testing.TB, v *Vectors, texts []string, want ...string) {
	t.Helper()
	var found []string
	for i, vector := range v.Get(texts) {
		if vector == nil {
			continue
		}
		found = append(found, texts[i])
		if !slices.EqualFunc(vector, vectorOf(texts[i], v.dimension), func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }) {
			t.Errorf("%q has the vector %v", texts[i], vector)
		}
	}
	if d := cmp.Diff(want, found); d != "" {
		t.Errorf("found (-want +got):\n%s", d)
	}
}

func TestVectors(t *testing.T) {
	root := filepath.Join(t.TempDir(), "below", "vectors")
	texts := []string{"a", "bb", "", "dddd"}
	v := openVectors(t, VectorOptions{Root: root}, "one", 3, nil)
	wantVectors(t, v, texts)
	if _, err := os.Stat(root); err == nil {
		t.Error("a cache that nothing was put into has made its folder")
	}
	v.Put([]string{"a", "refused", ""}, [][]float32{vectorOf("a", 3), nil, vectorOf("", 3)})
	putVectors(v, "dddd")
	wantVectors(t, v, append(texts, "refused"), "a", "", "dddd")
	v.Close()

	wantVectors(t, openVectors(t, VectorOptions{Root: root}, "one", 3, nil), texts, "a", "", "dddd")
	wantVectors(t, openVectors(t, VectorOptions{Root: root}, "two", 3, nil), texts)
	wantVectors(t, openVectors(t, VectorOptions{Root: root}, "one", 4, nil), texts)

	var none *Vectors
	none.Put(texts, nil)
	none.Close()
	if found := none.Get(texts); len(found) != len(texts) || found[0] != nil {
		t.Errorf("no cache has %v", found)
	}
	if openVectors(t, VectorOptions{Root: root, Limits: Limits{Bytes: -1}}, "one", 3, nil) != nil || openVectors(t, VectorOptions{}, "one", 3, nil) != nil {
		t.Error("vectors are kept without a folder or a limit")
	}

	want := Stats{Entries: 3, Files: 1, About: []About{{About: "embedder one", Entries: 3, Bytes: 36}}}
	must.Equal(t, "stats", want, must.Get(ReadVectorStats(root))(t), cmpopts.IgnoreFields(Stats{}, "Bytes"), cmpopts.IgnoreFields(About{}, "Oldest", "Newest"))
	for path, want := range map[string]os.FileMode{filepath.Dir(onlyFile(t, root)): 0o700, onlyFile(t, root): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %o", path, info.Mode(), err, want)
		}
	}
}

// TestVectorsDamage inverts every byte of a file: no vector ever changes, and lost vectors can be
// stored again.
func TestVectorsDamage(t *testing.T) {
	whole, name := someVectors(t)
	for at := range whole {
		root := t.TempDir()
		broken := slices.Clone(whole)
		broken[at] ^= 0xff
		writeVectors(t, root, name, broken)
		var reported []string
		v := openVectors(t, VectorOptions{Root: root}, "e", 3, &reported)
		texts := []string{"a", "bb", "ccc"}
		var found []string
		for i, vector := range v.Get(texts) {
			if vector != nil {
				found = append(found, texts[i])
			}
		}
		wantVectors(t, v, texts, found...)
		if len(found) == len(texts) || len(reported) != 1 || !strings.Contains(reported[0], "is damaged at byte") {
			t.Errorf("byte %d: found %q, reported %q", at, found, reported)
		}
		putVectors(v, texts...)
		wantVectors(t, v, texts, texts...)
		v.Close()
	}
}

// A folder that cannot be written to, as on a full disk, is reported once, and work continues.
func TestVectorsThatCannotBeKept(t *testing.T) {
	root := t.TempDir()
	var reported []string
	v := openVectors(t, VectorOptions{Root: root}, "e", 3, &reported)
	must.Do(t, os.WriteFile(v.cache.dir, nil, 0o600)) // at the path of its folder
	putVectors(v, "a")
	putVectors(v, "bb")
	wantVectors(t, v, []string{"a", "bb"})
	v.Close()
	if len(reported) != 1 || !strings.Contains(reported[0], "not kept for later builds") {
		t.Errorf("reported %q", reported)
	}
}

// The reason why vectors cannot be stored is the same for each knowledge of a command: it is
// reported once.
func TestVectorsWarnOnce(t *testing.T) {
	root := filepath.Join(t.TempDir(), "vectors")
	must.Do(t, os.WriteFile(root, nil, 0o600)) // not a folder
	var log bytes.Buffer
	o := VectorOptions{Root: root, Limits: Limits{Bytes: 1 << 20}, Log: slog.New(slog.NewTextHandler(&log, nil)), Warned: new(atomic.Bool)}
	for _, embedder := range []string{"one", "two"} {
		v := OpenVectors(o, embedder, embedder, 3)
		v.Put([]string{"a"}, [][]float32{{1, 2, 3}})
		v.Close()
	}
	if said := log.String(); strings.Count(said, "level=WARN") != 1 || !strings.Contains(said, root) || !strings.Contains(said, "every knowledge") {
		t.Errorf("the log says %s", said)
	}
}

// The least recently used vectors are removed first, in whole files, at the end and at the
// beginning of a build. A build writes no more than the limit.
func TestVectorsAreBounded(t *testing.T) {
	const dimension, perFile = 4096, 4 // 16 KiB each; a file has at least 64 KiB
	root := t.TempDir()
	text := func(i int) string { return strings.Repeat("x", i+1) }
	keep := func(bytes int64, from, to int) {
		v := openVectors(t, VectorOptions{Root: root, Limits: Limits{Bytes: bytes}}, "e", dimension, nil)
		for i := from; i < to; i++ {
			putVectors(v, text(i))
		}
		v.Close()
	}
	keep(1<<30>>10, 0, 12) // files of 64 KiB
	paths := vectorFiles(t, root)
	if len(paths) != 12/perFile {
		t.Fatalf("%d files: %q", len(paths), paths)
	}
	texts := make([]string, 20)
	for i := range texts {
		texts[i] = text(i)
	}
	// All files were used an hour ago, and the first vectors are used now.
	for _, path := range paths {
		must.Do(t, os.Chtimes(path, time.Time{}, time.Now().Add(-time.Hour)))
	}
	v := openVectors(t, VectorOptions{Root: root}, "e", dimension, nil)
	wantVectors(t, v, texts[:1], texts[0])
	v.Close()
	keep(200_000, 12, 13) // 64 KiB that were used, one new vector, and one of the two other files
	if size := sizeOf(vectorFiles(t, root)); size > 200_000 || size < 100_000 {
		t.Errorf("%d bytes are left", size)
	}
	v = openVectors(t, VectorOptions{Root: root}, "e", dimension, nil)
	found := 0
	for _, vector := range v.Get(texts[4:12]) {
		if vector != nil {
			found++
		}
	}
	wantVectors(t, v, texts[:4], texts[:4]...)
	wantVectors(t, v, texts[12:], texts[12])
	if v.Close(); found != 4 {
		t.Errorf("%d of those are left that were not used for an hour, want those of one file", found)
	}

	keep(100_000, 100, 120) // a build of 320 KiB
	if size := sizeOf(vectorFiles(t, root)); size > 100_000 || size == 0 {
		t.Errorf("%d bytes are left of a build that was larger than the limit", size)
	}
	old := vectorFiles(t, root)[0]
	must.Do(t, os.Chtimes(old, time.Time{}, time.Now().Add(-time.Hour)))
	if done, err := TrimVectors(root, Limits{Age: 30 * time.Minute}); err != nil || done.Records == 0 {
		t.Errorf("by age: %+v, %v", done, err)
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("an old file is left")
	}
}

// Files of an earlier racflow, in which vectors were single records, are removed at the next build.
func TestVectorsOfAnOlderRacflow(t *testing.T) {
	whole, name := someVectors(t)
	root := t.TempDir()
	writeVectors(t, root, name, append([]byte("racflow vectors 1\n"), whole...))
	var reported []string
	openVectors(t, VectorOptions{Root: root}, "e", 3, &reported).Close()
	if all := vectorFiles(t, root); len(all)+len(reported) > 0 {
		t.Errorf("%q is left, reported %q", all, reported)
	}
}

// TestTrim trims answers: the oldest are removed first.
func TestTrim(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir)
	for i := range 100 {
		put(t, c, fmt.Sprint(i), strings.Repeat("x", 1000))
	}
	must.Do(t, c.Close())
	for _, l := range []Limits{{}, {Bytes: 1 << 20}, {Age: time.Hour}} {
		if done, err := Trim(dir, l); err != nil || done != (Cleared{}) {
			t.Errorf("%+v: %+v, %v", l, done, err)
		}
	}
	done, err := Trim(dir, Limits{Bytes: 50_000})
	s, _ := ReadStats(dir)
	if err != nil || s.Bytes > 45_000 || s.Bytes < 43_000 || done.Records+s.Entries != 100 {
		t.Errorf("%+v, %v: %+v", done, err, s)
	}
	again := open(t, dir)
	want(t, again, fmt.Sprint(done.Records-1), "-")
	want(t, again, fmt.Sprint(done.Records), strings.Repeat("x", 1000))
	must.Do(t, again.Close())
	if done, err := Trim(dir, Limits{Age: time.Nanosecond}); err != nil || done.Records != s.Entries || len(files(t, dir)) != 0 {
		t.Errorf("by age: %+v, %v", done, err)
	}
}

// someVectors returns the content of a file with three vectors, and the file's path below the root.
func someVectors(t testing.TB) (content []byte, name string) {
	root := t.TempDir()
	v := openVectors(t, VectorOptions{Root: root}, "e", 3, nil)
	putVectors(v, "a", "bb")
	putVectors(v, "ccc")
	v.Close()
	path := onlyFile(t, root)
	return must.Get(os.ReadFile(path))(t), must.Get(filepath.Rel(root, path))(t)
}

func writeVectors(t testing.TB, root, name string, content []byte) {
	path := filepath.Join(root, name)
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must.Do(t, os.WriteFile(path, content, 0o600))
}

func vectorFiles(t testing.TB, root string) []string { return files(t, filepath.Join(root, "*")) }

func onlyFile(t testing.TB, root string) string {
	t.Helper()
	all := vectorFiles(t, root)
	if len(all) != 1 {
		t.Fatalf("files %q, want one", all)
	}
	return all[0]
}
