package local

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/internal/store/segment"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
	"github.com/racflow/racflow/sdk/support"
)

// intoFile moves the rows in the log of a collection into a file.
func intoFile(t testing.TB, dir string, dimension int) {
	t.Helper()
	s := openStore(t, dir)
	s.limits = limits{}
	mustOpen(t, s, dimension)
	must.Do(t, s.Commit(ctx, "c", []byte("in a file")))
	must.Do(t, s.Close())
}

// oneSegment writes a collection that is one segment in a file. It returns the file and its bytes.
func oneSegment(t testing.TB, dir string) (path string, b []byte) {
	t.Helper()
	r := rand.New(rand.NewPCG(5, 6))
	s := openSmall(t, dir)
	for i := range 70 {
		must.Do(t, s.Put(ctx, "c", []sdk.Entry{randomEntry(r, fmt.Sprint("e", i), 2)}))
	}
	must.Do(t, s.Commit(ctx, "c", nil))
	s.Close()
	intoFile(t, dir, 2)
	files, err := fs.Glob(os.DirFS(dir), "c/*"+segment.SegmentSuffix)
	must.Do(t, err)
	if len(files) != 1 {
		t.Fatalf("files %q", files)
	}
	path = filepath.Join(dir, filepath.FromSlash(files[0]))
	b, err = os.ReadFile(path)
	must.Do(t, err)
	return path, b
}

// Sparse vectors come back bit by bit from the log, from memory and from a file, and take little room
// in the file.
func TestSparseVectors(t *testing.T) {
	const rows, dimension = 3000, 4096
	r, dir := rand.New(rand.NewPCG(1, 2)), t.TempDir()
	s := openStore(t, dir)
	mustOpen(t, s, dimension)
	var want []sdk.Entry
	for i := range rows {
		e := entry(fmt.Sprint(i), randomText(r, 3), make([]float32, dimension)...)
		e.Label = "a"
		for range r.IntN(20) {
			e.Vector[r.IntN(dimension)] = float32(r.NormFloat64())
		}
		e.Vector, _ = segment.Normalise(nil, e.Vector)
		want = append(want, e)
	}
	same := func(when string, s *store) {
		t.Helper()
		for i, got := range everything(t, s) {
			if got.ID != want[i].ID || !slices.Equal(got.Vector, want[i].Vector) {
				t.Fatalf("%s, entry %s: another vector", when, got.ID)
			}
		}
		must.Do(t, check(ctx, Location{dir, "c"}))
		found, err := s.Search(ctx, "c", sdk.Search{Mode: sdk.ModeHybrid, NumCandidates: 5}, []sdk.Query{{Text: "none", Vector: want[7].Vector}})
		must.Do(t, err)
		if found[0].Dense[0].ID != "7" {
			t.Errorf("%s: the nearest to entry 7 is %s", when, found[0].Dense[0].ID)
		}
	}
	commit(t, s, nil, want...)
	same("in memory", s)
	if size := logSize(t, dir); size > rows*400 {
		t.Errorf("the log has %d bytes", size)
	}
	must.Do(t, s.Close())
	s = openStore(t, dir)
	mustOpen(t, s, dimension)
	same("from the log", s)
	must.Do(t, s.Close())
	intoFile(t, dir, dimension)
	s = openStore(t, dir)
	mustOpen(t, s, dimension)
	same("from a file", s)
}

// TestMergingIsBuilding checks that a segment has the same bytes whether its rows came at once or were merged, with
// others removed in between.
func TestMergingIsBuilding(t *testing.T) {
	analyzer, _ := support.NamedAnalyzer("standard")
	for seed := range uint64(20) {
		r, dimension := rand.New(rand.NewPCG(seed, 3)), 5+int(seed%2)*30
		s := &segment.Snapshot{Dimension: dimension, Analyzer: &analyzer}
		var whole, some segment.Draft
		var parts []segment.Part
		var gone []string
		for i := range 1 + r.IntN(100) {
			e := randomEntry(r, fmt.Sprint(i), dimension)
			meta, _ := segment.AppendMeta(nil, e.Meta)
			if seed%4 == 1 { // sparse
				clear(e.Vector[:32])
			}
			vector, _ := segment.Normalise(nil, e.Vector)
			p := &segment.Batch{Rows: []segment.Row{{Sequence: uint64(i), ID: e.ID, Label: e.Label, Context: e.Context, Text: e.Text, Meta: string(meta)}}}
			p.Vectors.Append(vector)
			some.Add(p)
			if r.IntN(3) == 0 {
				gone = append(gone, e.ID)
			} else {
				whole.Add(p)
			}
			if r.IntN(10) == 0 {
				var err error
				parts, err = s.Append(parts, &some)
				must.Do(t, err)
			}
		}
		parts, err := s.Append(parts, &some)
		must.Do(t, err)
		removed := segment.NewRemover(parts, &analyzer)
		for _, id := range gone {
			removed.Remove(id)
		}
		var merged, built segment.Memory
		must.Do(t, segment.Build(segment.NewImageWriter(&merged), 1, dimension, true, segment.Inputs(removed.Parts)))
		must.Do(t, segment.Build(segment.NewImageWriter(&built), 1, dimension, true, []segment.Input{{Source: whole.Source(&analyzer)}}))
		if !bytes.Equal(merged.Bytes, built.Bytes) {
			t.Fatalf("seed %d: %d bytes merged and %d built differ", seed, len(merged.Bytes), len(built.Bytes))
		}
	}
}

// TestDamagedSegment changes every byte in turn. Opening or Check reports the damage, and no operation crashes.
func TestDamagedSegment(t *testing.T) {
	must.NoRace(t)
	dir := t.TempDir()
	path, whole := oneSegment(t, dir)
	s, err := segment.OpenSegment(path)
	must.Do(t, err)
	inside := func(at int) bool { // not in the gaps between sections
		for _, e := range s.Table {
			if uint64(at) >= e.Offset && uint64(at) < e.Offset+e.Length {
				return true
			}
		}
		return at < segment.ImageHeader-4 || at >= segment.ImageHeader && at < segment.ImageHeader+int(segment.SectionCount)*segment.EntrySize
	}
	for at := range whole {
		broken := bytes.Clone(whole)
		broken[at] ^= 0x21
		if at%151 > 0 && at > segment.ImageStart || !inside(at) {
			continue
		}
		must.Do(t, os.WriteFile(path, broken, 0o644))
		err := check(ctx, Location{dir, "c"})
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Fatalf("byte %d changed: %v", at, err)
		}
		askAll(t, dir)
	}
}

// askAll makes every kind of request to a collection that may be damaged.
func askAll(t testing.TB, dir string) {
	t.Helper()
	s := openStore(t, dir)
	defer s.Close()
	if _, err := s.Open(ctx, "c", sdk.Schema{Dimension: 2, Analyzer: "standard"}); err != nil {
		return
	}
	f := &sdk.Filter{Op: sdk.FilterGreater, Field: sdk.FieldMeta, Key: "n", Values: []any{-3.0}}
	few := &sdk.Filter{Op: sdk.FilterPrefix, Field: sdk.FieldMeta, Key: "s", Values: []any{strings.Repeat("c", 64)}}
	for _, filter := range []*sdk.Filter{nil, f, few} {
		_, err := s.Search(ctx, "c", sdk.Search{Mode: sdk.ModeHybrid, NumCandidates: 9}, []sdk.Query{{Text: "word1 word2 often", Vector: []float32{1, 2}, Filter: filter}})
		must.Do(t, err)
	}
	everything(t, s)
	_, err := s.Get(ctx, "c", []string{"e1"})
	must.Do(t, err)
}

func TestForeignSegments(t *testing.T) {
	dir := t.TempDir()
	path, whole := oneSegment(t, dir)
	newer := bytes.Clone(whole)
	newer[8] = segment.ImageVersion + 2
	other := t.TempDir()
	_, another := oneSegment(t, other)
	for name, tt := range map[string]struct {
		content []byte
		want    string
	}{
		"text":    {[]byte(strings.Repeat("some other file that is long enough\n", 9)), "not a racflow segment"},
		"empty":   {nil, "not a racflow segment"},
		"newer":   {newer, "use a newer racflow"},
		"cut off": {whole[:len(whole)-100], fmt.Sprintf("it should have %d bytes", len(whole))},
		"longer":  {append(bytes.Clone(whole), 0), fmt.Sprintf("it should have %d bytes", len(whole))},
		"another": {another, "another segment"},
	} {
		must.Do(t, os.WriteFile(path, tt.content, 0o644))
		_, err := openStore(t, dir).Open(ctx, "c", sdk.Schema{Dimension: 2, Analyzer: "standard"})
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	must.Do(t, os.Remove(path))
	_, err := openStore(t, dir).Open(ctx, "c", sdk.Schema{Dimension: 2, Analyzer: "standard"})
	if !errors.Is(err, errMissing) || !strings.Contains(err.Error(), "restore it from a copy") {
		t.Errorf("missing: %v", err)
	}
}

// FuzzSegment reads arbitrary bytes as a segment and makes every kind of request. The answers do not matter, only
// that it does not crash.
func FuzzSegment(f *testing.F) {
	dir := f.TempDir()
	path, whole := oneSegment(f, dir)
	f.Add(uint16(0), uint32(0), []byte{1})
	for i := range uint16(segment.SectionCount) {
		f.Add(i, uint32(4), []byte{255, 255, 255, 127, 0, 1})
	}
	m, err := segment.ParseImage(whole, path)
	must.Do(f, err)
	f.Fuzz(func(t *testing.T, number uint16, at uint32, change []byte) {
		b := segment.Aligned(whole)
		if number < uint16(segment.SectionCount) { // in a section, or anywhere
			e := m.Table[number]
			if e.Length > 0 {
				copy(b[e.Offset : e.Offset+e.Length][uint64(at)%e.Length:], change)
			}
		} else {
			copy(b[int(at)%len(b):], change)
		}
		resealSegment(b)
		must.Do(t, os.WriteFile(path, b, 0o644))
		askAll(t, dir)
		if err := check(ctx, Location{dir, "c"}); err == nil && !bytes.Equal(b, whole) {
			t.Skip() // the change has no effect
		}
	})
}

// resealSegment corrects the checksums of the header and the sections, so that the fuzzer gets past them.
func resealSegment(b []byte) {
	for i := range int(segment.SectionCount) {
		at := segment.ImageHeader + i*segment.EntrySize
		from, length := binary.LittleEndian.Uint64(b[at:]), binary.LittleEndian.Uint64(b[at+8:])
		if from <= uint64(len(b)) && length <= uint64(len(b))-from {
			binary.LittleEndian.PutUint32(b[at+16:], segment.Checksum(0, b[from:from+length]))
		}
	}
	binary.LittleEndian.PutUint32(b[56:], segment.HeaderChecksum(b))
}
