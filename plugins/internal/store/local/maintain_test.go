package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/plugins/internal/store/segment"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

func TestCollections(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	for _, name := range []string{"b", "Ünit/A", ".", "a.b"} {
		must.Do(t, put(s, name))
	}
	s.Close()
	for _, other := range []string{"empty", "%zz", "%41", "UPPER"} {
		must.Do(t, os.MkdirAll(filepath.Join(dir, other), 0o755))
		if other != "empty" {
			must.Do(t, os.WriteFile(filepath.Join(dir, other, "log"), nil, 0o644))
		}
	}
	names, err := collections(dir)
	// "%41" is the folder of the collection "A".
	if want := []string{".", "A", "a.b", "b", "Ünit/A"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("collections %q, %v, want %q", names, err, want)
	}
	if names, err := collections(filepath.Join(dir, "none")); names != nil || err != nil {
		t.Errorf("of a folder that is not there: %q, %v", names, err)
	}
}

func TestMaintenance(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	s.limits = limits{rows: 50, bytes: 1 << 20, spill: 2}
	mustOpen(t, s, 2)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 130 {
		e := randomEntry(r, fmt.Sprint(i), 2)
		e.Meta, e.Label = sdk.Meta{"n": float64(i)}, fmt.Sprint("label ", i%7)
		commit(t, s, fmt.Append(nil, i), e)
	}
	must.Do(t, s.Delete(ctx, "c", []string{"3", "10", "129"}))
	must.Do(t, s.Commit(ctx, "c", []byte("note")))
	want := everything(t, s)
	got, err := stats(Location{dir, "c"})
	must.Do(t, err)
	must.Equal(t, "statistics", Statistics{Entries: 127, Labels: 7, Dimension: 2, Analyzer: "standard", Note: []byte("note")}, got, cmpopts.IgnoreFields(got, "Removed", "Segments", "Logged", "Bytes", "Words"))
	if min(got.Removed, got.Segments, got.Logged) == 0 || got.Bytes < 10_000 || got.Words < 127 {
		t.Errorf("statistics %+v", got)
	}
	must.Do(t, check(ctx, Location{dir, "c"}))

	must.Do(t, s.Put(ctx, "c", []sdk.Entry{entry("x", "", 1, 0)}))
	if _, err := Compact(ctx, Location{dir, "c"}); sdk.CodeOf(err) != sdk.CodeTransient {
		t.Errorf("compacting while another writes: %v", err)
	}
	s.Close()
	orphan := filepath.Join(dir, "c", "0123456789abcdef"+segment.SegmentSuffix)
	must.Do(t, os.WriteFile(orphan, make([]byte, 5000), 0o644))
	done, err := Compact(ctx, Location{dir, "c"})
	must.Do(t, err)
	if done.After >= done.Before {
		t.Errorf("compacted from %d to %d bytes", done.Before, done.After)
	}
	if _, err := os.Stat(orphan); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that belongs to nothing is still there: %v", err)
	}
	after, err := stats(Location{dir, "c"})
	must.Do(t, err)
	must.Equal(t, "statistics after compaction", []any{1, 0, 0, 127, got.Words, done.After, "note"}, []any{after.Segments, after.Removed, after.Logged, after.Entries, after.Words, after.Bytes, string(after.Note)})
	again, err := Compact(ctx, Location{dir, "c"})
	if err != nil || again.After != again.Before {
		t.Errorf("compacted again: %+v, %v", again, err)
	}
	must.Do(t, check(ctx, Location{dir, "c"}))
	var exported []sdk.Entry
	must.Do(t, export(ctx, Location{dir, "c"}, func(e sdk.Entry) error { exported = append(exported, e); return nil }))
	if diff := cmp.Diff(want, exported); diff != "" {
		t.Error(diff)
	}
	stop := errors.New("enough")
	if err := export(ctx, Location{dir, "c"}, func(sdk.Entry) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("export that is stopped: %v", err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	for what, err := range map[string]error{
		"check":  check(cancelled, Location{dir, "c"}),
		"export": export(cancelled, Location{dir, "c"}, func(sdk.Entry) error { return nil }),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s, cancelled: %v", what, err)
		}
	}
}

// TestCompactLog compacts a collection whose rows are only in the log: they stay there, since a segment of them would
// be larger.
func TestCompactLog(t *testing.T) {
	dir := t.TempDir()
	s := openSmall(t, dir)
	for i := range 12 {
		commit(t, s, fmt.Append(nil, i), entry(fmt.Sprint(i%3), strings.Repeat("red green ", 20), float32(i), 1))
	}
	want := everything(t, s)
	s.Close()
	done, err := Compact(ctx, Location{dir, "c"})
	must.Do(t, err)
	again, err := Compact(ctx, Location{dir, "c"})
	must.Do(t, err)
	if done.After > done.Before/2 || again.After != again.Before {
		t.Errorf("%+v, and again %+v", done, again)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "c", "*"+segment.SegmentSuffix)); len(files) > 0 {
		t.Errorf("files %q", files)
	}
	if diff := cmp.Diff(want, everything(t, openSmall(t, dir))); diff != "" {
		t.Error(diff)
	}
}

// TestFind finds all collections, including incomplete ones, and nothing else.
func TestFind(t *testing.T) {
	root := filepath.Join(t.TempDir(), "[a] *") // has no special meaning
	for _, name := range []string{"whole", "unlocked", "logless", "begun"} {
		must.Do(t, os.MkdirAll(filepath.Join(root, name), 0o755))
		oneSegment(t, filepath.Join(root, name))
	}
	must.Do(t, os.Remove(filepath.Join(root, "unlocked", "c", "lock")))
	must.Do(t, os.Remove(filepath.Join(root, "logless", "c", "log")))
	s := openSmall(t, filepath.Join(root, "begun"))
	must.Do(t, s.Drop(ctx, "c"))
	mustOpen(t, s, 2)
	must.Do(t, s.Put(ctx, "c", []sdk.Entry{entry("a", "x", 1, 0)}))
	must.Do(t, os.MkdirAll(filepath.Join(root, "other"), 0o755))
	must.Do(t, os.WriteFile(filepath.Join(root, "other", "log"), []byte("of something else"), 0o644))
	link := filepath.Join(t.TempDir(), "link")
	must.Do(t, os.Symlink(root, link))

	for _, from := range []string{root, link} {
		found, err := find(from)
		must.Do(t, err)
		var dirs []string
		for _, at := range found {
			dir, err := filepath.Rel(from, at.Dir)
			must.Do(t, err)
			dirs = append(dirs, dir)
		}
		if got := strings.Join(dirs, " "); got != "begun logless unlocked whole" {
			t.Errorf("%s: found %s", from, got)
		}
	}
	for name, want := range map[string]string{
		"whole": "", "unlocked": "", "begun": "nothing was committed", "logless": "it is not there although segments are",
	} {
		err := check(ctx, Location{filepath.Join(root, name), "c"})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
		if errors.Is(err, fs.ErrNotExist) != (name == "begun") {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.Close()
	left, err := os.ReadDir(filepath.Join(root, "begun"))
	must.Do(t, err)
	if len(left) != 1 {
		t.Errorf("dropped, and still there: %v", left)
	}
}

// TestDamageIsNotCopied changes a byte of each section that is not checked when a collection is opened. Neither a
// merge, nor compaction, nor an export may treat it as valid.
func TestDamageIsNotCopied(t *testing.T) {
	for part := range segment.Unread {
		t.Run(segment.SectionNames[part], func(t *testing.T) {
			dir := t.TempDir()
			path, b := oneSegment(t, dir)
			whole, err := segment.OpenSegment(path)
			must.Do(t, err)
			b[whole.Table[part].Offset] ^= 1
			must.Do(t, os.WriteFile(path, b, 0o644))
			s := openStore(t, dir)
			mustOpen(t, s, 2)
			commit(t, s, nil, entry("new", "red", 1, 0)) // otherwise there is nothing to compact
			s.Close()
			_, compactErr := Compact(ctx, Location{dir, "c"})
			exportErr := export(ctx, Location{dir, "c"}, func(sdk.Entry) error { return errors.New("an entry came out") })
			for what, err := range map[string]error{"compact": compactErr, "export": exportErr} {
				if err == nil || !strings.Contains(err.Error(), path+" is damaged") {
					t.Errorf("%s: %v", what, err)
				}
			}
			s = openStore(t, dir)
			mustOpen(t, s, 2)
			var all []string
			for i := range 40 { // so that the rest is due to be merged
				all = append(all, fmt.Sprint("e", i))
			}
			must.Do(t, s.Delete(ctx, "c", all))
			must.Do(t, s.Commit(ctx, "c", nil))
			s.Close()
			if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, b) {
				t.Errorf("the damaged file was merged away: %v", err)
			}
			if err := check(ctx, Location{dir, "c"}); err == nil {
				t.Error("check: nothing is wrong any more")
			}
		})
	}
}

func TestMaintenanceOfNothing(t *testing.T) {
	dir := t.TempDir()
	_, statsErr := stats(Location{dir, "none"})
	_, compactErr := Compact(ctx, Location{dir, "none"})
	for what, err := range map[string]error{
		"stats": statsErr, "compact": compactErr, "check": check(ctx, Location{dir, "none"}),
		"export": export(ctx, Location{dir, "none"}, func(sdk.Entry) error { return nil }),
	} {
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), `"none"`) {
			t.Errorf("%s: %v", what, err)
		}
	}
	s := openSmall(t, dir)
	commit(t, s, nil, entry("a", "x", 1, 0))
	must.Do(t, s.Delete(ctx, "c", []string{"a"}))
	must.Do(t, s.Commit(ctx, "c", nil))
	s.Close()
	if _, err := Compact(ctx, Location{dir, "c"}); err != nil {
		t.Error(err)
	}
	if n := mustOpen(t, openStore(t, dir), 2).Entries; n != 0 {
		t.Errorf("%d entries", n)
	}
	must.Do(t, check(ctx, Location{dir, "c"}))
}

// TestRemovedFilesAreForgotten deletes all rows of a file. Neither the same process nor a later one may then need the
// file.
func TestRemovedFilesAreForgotten(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	s.limits = limits{rows: 5, bytes: 1 << 20, spill: 2}
	mustOpen(t, s, 2)
	var all []string
	for i := range 12 {
		all = append(all, fmt.Sprint(i))
		must.Do(t, s.Put(ctx, "c", []sdk.Entry{entry(all[i], "x", 1, 0)}))
	}
	must.Do(t, s.Commit(ctx, "c", nil))
	must.Do(t, s.Delete(ctx, "c", all))
	commit(t, s, nil, entry("new", "x", 1, 0))
	commit(t, s, nil, entry("newer", "x", 1, 0))
	if files, _ := filepath.Glob(filepath.Join(dir, "c", "*"+segment.SegmentSuffix)); len(files) > 0 {
		t.Errorf("files %q", files)
	}
	if got := ids(everything(t, openSmall(t, dir))); got != "new newer" {
		t.Errorf("entries %q", got)
	}
}

// TestReaderFindsTheNewFiles opens a collection while one of its files is missing for a moment, as if a new log had
// replaced the one just read.
func TestReaderFindsTheNewFiles(t *testing.T) {
	dir := t.TempDir()
	path, _ := oneSegment(t, dir)
	hidden := path + ".hidden"
	must.Do(t, os.Rename(path, hidden))
	time.AfterFunc(70*time.Millisecond, func() { os.Rename(hidden, path) })
	_, err := openStore(t, dir).Open(ctx, "c", sdk.Schema{Dimension: 2, Analyzer: "standard"})
	must.Do(t, err)
}
