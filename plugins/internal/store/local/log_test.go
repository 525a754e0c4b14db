package local

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/internal/store/segment"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// threeCommits writes a log of three commits with an entry each. It returns the log's bytes, and the
// end of each commit.
func threeCommits(t testing.TB, dir string) (log []byte, ends []int64) {
	t.Helper()
	s := openSmall(t, dir)
	for _, id := range []string{"a", "b", "c"} {
		commit(t, s, []byte(id), entry(id, "text of "+id, 1, 0))
		ends = append(ends, logSize(t, dir))
	}
	s.Close()
	log, err := os.ReadFile(filepath.Join(dir, "c", "log"))
	must.Do(t, err)
	return log, ends
}

func TestTornTails(t *testing.T) {
	dir := t.TempDir()
	log, ends := threeCommits(t, dir)
	path := filepath.Join(dir, "c", "log")
	for size := int64(segment.LogHeader); size <= int64(len(log)); size++ {
		var want []string
		for i, end := range ends {
			if size >= end {
				want = append(want, string(rune('a'+i)))
			}
		}
		for _, garbage := range []string{"", "garbage \xffcommit\n and more"} {
			must.Do(t, os.WriteFile(path, append(log[:size:size], garbage...), 0o644))
			s := openStore(t, dir)
			s.config.Sync = false
			mustOpen(t, s, 2)
			if got := ids(everything(t, s)); got != strings.Join(want, " ") {
				t.Fatalf("log cut at %d: entries %q, want %q", size, got, want)
			}
			if size%16 == 0 {
				commit(t, s, []byte("new"), entry("new", "", 0, 1))
				s.Close()
				if got := ids(everything(t, openSmall(t, dir))); got != strings.Join(append(want, "new"), " ") {
					t.Fatalf("log cut at %d, then written: entries %q", size, got)
				}
			}
			s.Close()
		}
	}
}

func TestDamage(t *testing.T) {
	dir := t.TempDir()
	log, ends := threeCommits(t, dir)
	path := filepath.Join(dir, "c", "log")
	for at := int64(segment.LogHeader); at < ends[1]; at++ {
		broken := bytes.Clone(log)
		broken[at] ^= 0x10
		must.Do(t, os.WriteFile(path, broken, 0o644))
		f, err := os.Open(path)
		must.Do(t, err)
		_, err = segment.InspectLog(f, segment.LogState{})
		f.Close()
		var d *segment.DamageError
		if !errors.As(err, &d) || d.Offset > at || !strings.Contains(err.Error(), "restore it from a copy") {
			t.Fatalf("byte %d changed: %v", at, err)
		}
	}
	_, err := openStore(t, dir).Open(ctx, "c", sdk.Schema{Dimension: 2, Analyzer: "standard"})
	if err == nil || !strings.Contains(err.Error(), "log is damaged at byte ") {
		t.Errorf("open: %v", err)
	}
}

func TestForeignFiles(t *testing.T) {
	dir := t.TempDir()
	log, _ := threeCommits(t, dir)
	newer := bytes.Clone(log)
	newer[len(segment.LogMagic)] = segment.LogVersion + 1
	older := bytes.Clone(log)
	older[len(segment.LogMagic)] = segment.LogVersion - 1
	for name, tt := range map[string]struct {
		content []byte
		want    string
	}{
		"text":  {[]byte("id\ttext\nsome other file that is long enough\n"), "not a racflow store"},
		"empty": {nil, "not a racflow store"},
		"newer": {newer, "use a newer racflow"},
		"older": {older, "from before the first release"},
	} {
		path := filepath.Join(dir, "c", "log")
		must.Do(t, os.WriteFile(path, tt.content, 0o644))
		_, err := openStore(t, dir).Open(ctx, "c", sdk.Schema{Dimension: 2, Analyzer: "standard"})
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
		if after, _ := os.ReadFile(path); !bytes.Equal(after, tt.content) {
			t.Errorf("%s: the file was changed", name)
		}
	}
}

// TestTextCannotForgeACommit stores a commit frame of another log as a text, and then damages the
// frame with this text.
func TestTextCannotForgeACommit(t *testing.T) {
	dir := t.TempDir()
	log, ends := threeCommits(t, dir)
	forged := string(log[ends[0]:ends[1]])
	s := openStore(t, dir)
	mustOpen(t, s, 2)
	must.Do(t, s.Put(ctx, "c", []sdk.Entry{entry("d", forged, 1, 0)}))
	path := filepath.Join(dir, "c", "log")
	torn, err := os.ReadFile(path)
	must.Do(t, err)
	must.Do(t, os.WriteFile(path, torn[:len(torn)-1], 0o644))
	if got := ids(everything(t, openSmall(t, dir))); got != "a b c" {
		t.Errorf("entries %q", got)
	}
}

func TestOneWriterManyReaders(t *testing.T) {
	dir := t.TempDir()
	writer, other := openSmall(t, dir), openSmall(t, dir)
	must.Do(t, writer.Put(ctx, "c", []sdk.Entry{entry("a", "red", 1, 0)}))
	err := other.Put(ctx, "c", []sdk.Entry{entry("b", "red", 1, 0)})
	if sdk.CodeOf(err) != sdk.CodeTransient || !strings.Contains(err.Error(), "process "+strconv.Itoa(os.Getpid())) {
		t.Fatalf("second writer: %v", err)
	}
	if c := mustOpen(t, other, 2); c.Entries != 0 {
		t.Fatalf("a reader sees %d staged entries", c.Entries)
	}
	must.Do(t, writer.Commit(ctx, "c", nil))

	if n := len(everything(t, other)); n != 0 {
		t.Errorf("a reader's state changed under it: %d entries", n)
	}
	err = other.Put(ctx, "c", []sdk.Entry{entry("b", "red", 1, 0)})
	if sdk.CodeOf(err) != sdk.CodeTransient || !strings.Contains(err.Error(), "open it again") {
		t.Fatalf("writing to a state that has passed: %v", err)
	}
	if c := mustOpen(t, other, 2); c.Entries != 1 {
		t.Fatalf("opened again: %d entries", c.Entries)
	}
	commit(t, other, nil, entry("b", "red", 1, 0))
	if c := mustOpen(t, writer, 2); c.Entries != 2 {
		t.Errorf("the first writer, opened again: %d entries", c.Entries)
	}
}

func TestReadOnlyFolder(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may write everywhere")
	}
	dir := t.TempDir()
	threeCommits(t, dir)
	must.Do(t, os.Chmod(filepath.Join(dir, "c"), 0o555))
	t.Cleanup(func() { os.Chmod(filepath.Join(dir, "c"), 0o755) })
	if got := ids(everything(t, openSmall(t, dir))); got != "a b c" {
		t.Errorf("entries %q", got)
	}
}

// basedLog writes a collection with a row in a file, a removed row of that file, and a row in the log. It returns the
// file, its content, and the log.
func basedLog(t testing.TB, dir string) (segment string, content, log []byte) {
	t.Helper()
	s := openSmall(t, dir)
	commit(t, s, nil, entry("a", "red", 1, 0), entry("b", "green red", 1, 0), entry("d", "red", 1, 0))
	intoFile(t, dir, 2)
	mustOpen(t, s, 2)
	must.Do(t, s.Delete(ctx, "c", []string{"a"}))
	must.Do(t, s.Commit(ctx, "c", nil))
	c := s.collections["c"] // a base with removed rows, as a merge writes it
	must.Do(t, c.begin())
	next, err := c.checkpoint(c.now.Load().LogState, c.now.Load().Snapshot)
	must.Do(t, err)
	c.now.Store(next)
	c.end()
	commit(t, s, nil, entry("c", "blue", 1, 0))
	segment = c.now.Load().Listed[0]
	content, err = os.ReadFile(segment)
	must.Do(t, err)
	log, err = os.ReadFile(c.path())
	must.Do(t, err)
	s.Close()
	return segment, content, log
}

// TestDamagedBase changes every byte of a log that lists a file.
func TestDamagedBase(t *testing.T) {
	dir := t.TempDir()
	_, _, log := basedLog(t, dir)
	for at := segment.LogHeader; at < len(log); at += 7 {
		broken := bytes.Clone(log)
		broken[at] ^= 0x10
		must.Do(t, os.WriteFile(filepath.Join(dir, "c", "log"), broken, 0o644))
		s := openStore(t, dir)
		_, err := s.Open(ctx, "c", sdk.Schema{Dimension: 2, Analyzer: "standard"})
		var d *segment.DamageError
		if err == nil && ids(everything(t, s)) != "b d" || err != nil && !errors.As(err, &d) {
			t.Fatalf("byte %d changed: %v, entries %q", at, err, ids(everything(t, s)))
		}
		s.Close()
	}
	// A base without its commit is not mistaken for an empty collection: the next writer could remove
	// its files.
	first := bytes.Index(log, []byte(segment.CommitMark)) - segment.FrameHeader
	end := first + segment.FrameHeader + int(binary.LittleEndian.Uint32(log[first:]))
	for size := segment.LogHeader + segment.FrameHeader + len("standard/2") + 4 + 5; size < end; size += 5 {
		must.Do(t, os.WriteFile(filepath.Join(dir, "c", "log"), log[:size], 0o644))
		_, err := openStore(t, dir).Open(ctx, "c", sdk.Schema{Dimension: 2, Analyzer: "standard"})
		var d *segment.DamageError
		if !errors.As(err, &d) {
			t.Fatalf("log cut at %d: %v", size, err)
		}
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, "c", "log"), log, 0o644))
	must.Do(t, check(ctx, Location{dir, "c"}))
	if got := ids(everything(t, openSmall(t, dir))); got != "b d c" {
		t.Errorf("entries %q", got)
	}
}

// FuzzLog opens arbitrary bytes as a log. If it accepts them, it must be able to continue the log.
func FuzzLog(f *testing.F) {
	log, _ := threeCommits(f, f.TempDir())
	f.Add(log[segment.LogHeader:])
	f.Add(log[segment.LogHeader : len(log)-5])
	f.Add([]byte{})
	dir := f.TempDir()
	listed, content, based := basedLog(f, dir)
	f.Add(based[segment.LogHeader:])
	f.Fuzz(func(t *testing.T, frames []byte) {
		path := filepath.Join(dir, "c", "log")
		if _, err := os.Stat(listed); err != nil { // the last input did not list it
			must.Do(t, os.WriteFile(listed, content, 0o644))
		}
		must.Do(t, os.WriteFile(path, append(log[:segment.LogHeader:segment.LogHeader], reseal(frames)...), 0o644))
		file, err := os.Open(path)
		must.Do(t, err)
		_, err = segment.InspectLog(file, segment.LogState{})
		file.Close()
		if err != nil {
			return
		}
		s := openStore(t, dir)
		s.config.Sync = false
		defer s.Close()
		if _, err := s.Open(ctx, "c", sdk.Schema{Dimension: 2, Analyzer: "standard"}); err != nil {
			return
		}
		all := everything(t, s)
		commit(t, s, nil, entry("new", "text", 1, 0))
		if n := len(everything(t, s)); n != len(all) && n != len(all)+1 {
			t.Fatalf("%d entries, and %d after another put", len(all), n)
		}
	})
}

// reseal corrects the checksums of frames, so that the fuzzer gets past them.
func reseal(frames []byte) []byte {
	b := bytes.Clone(frames)
	for at := 0; at+segment.FrameHeader <= len(b); {
		end := at + segment.FrameHeader + int(binary.LittleEndian.Uint32(b[at:]))
		if end > len(b) {
			break
		}
		binary.LittleEndian.PutUint32(b[at+5:], segment.FrameChecksum(b[at:at+5], b[at+segment.FrameHeader:end]))
		at = end
	}
	return b
}
