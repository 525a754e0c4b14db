package generation

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// log makes a log of frames, as format.md has them.
type log []byte

func newLog() log {
	return append(binary.LittleEndian.AppendUint32(log(magic), version), "0123456789abcdef"...)
}

func (l log) frame(kind byte, payload []byte) log {
	head := append(binary.LittleEndian.AppendUint32(nil, uint32(len(payload))), kind)
	table := crc32.MakeTable(crc32.Castagnoli)
	sum := crc32.Update(crc32.Checksum(head, table), table, payload)
	return append(binary.LittleEndian.AppendUint32(append(l, head...), sum), payload...)
}

func (l log) commit(note string) log {
	payload := binary.LittleEndian.AppendUint64([]byte(commitMark), uint64(len(l)))
	return l.frame(kindCommit, append(binary.LittleEndian.AppendUint64(payload, 7), note...))
}

func (l log) base(names ...uint64) log {
	payload := binary.LittleEndian.AppendUint32(nil, uint32(len(names)))
	for i, name := range names {
		removed := uint64(i % 2) // of every second one
		for _, n := range []uint64{name, 5, 70, removed, 1000} {
			payload = binary.LittleEndian.AppendUint64(payload, n)
		}
		if removed > 0 {
			payload = append(payload, make([]byte, 16)...)         // a bit for each of 70 rows
			payload = binary.LittleEndian.AppendUint32(payload, 3) // words
			payload = append(payload, make([]byte, 3*4)...)
		}
	}
	return l.frame(kindBase, payload)
}

// collection writes a collection of a log and of segments 1, 2 and 3.
func collection(t *testing.T, content log) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{LogName: string(content), "0000000000000001.segment": "seg-1", "0000000000000002.segment": "seg-2", "0000000000000003.segment": "seg-3", "lock": "7"}
	for name, content := range files {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return dir
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries := must.Get(os.ReadDir(dir))(t)
	all := map[string]string{}
	for _, e := range entries {
		text := must.Get(os.ReadFile(filepath.Join(dir, e.Name())))(t)
		all[e.Name()] = string(text)
	}
	return all
}

// What is copied is the log up to its last commit, whatever stands behind it, and the segments that it lists.
func TestCopy(t *testing.T) {
	whole := newLog().frame(1, []byte("schema")).base(1, 2).frame(2, []byte("rows")).commit("first").frame(3, nil).commit("second")
	want := map[string]string{LogName: string(whole), "0000000000000001.segment": "seg-1", "0000000000000002.segment": "seg-2"}
	whole = slices.Clip(whole)
	uncommitted := whole.frame(2, []byte("more rows"))
	for name, l := range map[string]log{
		"committed":     whole,
		"uncommitted":   uncommitted,
		"half a frame":  uncommitted[:len(uncommitted)-3],
		"half a head":   whole.frame(2, nil)[:len(whole)+4],
		"no checksum":   append(slices.Clone(uncommitted[:len(uncommitted)-1]), 'X'),
		"not a commit":  whole.frame(kindCommit, []byte("short")),
		"of elsewhere":  slices.Concat(whole, newLog().commit("another")[headerSize:]),
		"a huge length": slices.Concat(whole, log{0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0}),
	} {
		t.Run(name, func(t *testing.T) {
			to := filepath.Join(t.TempDir(), "copy")
			c, err := CopyFolder(collection(t, l), to)
			if err != nil || string(c.Note) != "second" || c.End != int64(len(whole)) {
				t.Fatalf("%+v, %v", c, err)
			}
			if diff := cmp.Diff(want, contents(t, to)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A copy stays as it is, whatever a writer does then.
func TestCopyStays(t *testing.T) {
	l := newLog().base(1).commit("note")
	dir, to := collection(t, l), filepath.Join(t.TempDir(), "copy")
	must.Get(CopyFolder(dir, to))(t)
	before := contents(t, to)
	f, err := os.OpenFile(filepath.Join(dir, LogName), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString("more")
	must.Do(t, errors.Join(err, f.Close(), os.Remove(filepath.Join(dir, "0000000000000001.segment"))))
	if diff := cmp.Diff(before, contents(t, to)); diff != "" {
		t.Error(diff)
	}
	if info, err := os.Stat(to); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestCopyRefuses(t *testing.T) {
	other := newLog()
	binary.LittleEndian.PutUint32(other[len(magic):], version+1)
	small := collection(t, newLog().base(1).commit("note"))
	must.Do(t, os.WriteFile(filepath.Join(small, "0000000000000001.segment"), []byte("seg"), 0o600))
	for name, c := range map[string]struct {
		dir  string
		is   error
		want string
	}{
		"nothing":           {t.TempDir(), fs.ErrNotExist, ""},
		"no commit":         {collection(t, newLog().frame(2, []byte("rows"))), fs.ErrNotExist, "nothing was committed"},
		"something else":    {collection(t, log("a log of something else, long enough")), ErrForeign, ""},
		"empty":             {collection(t, nil), ErrForeign, ""},
		"another version":   {collection(t, other.commit("note")), nil, "version 3"},
		"a missing segment": {collection(t, newLog().base(1, 9).commit("note")), errReplaced, ""},
		"a small segment":   {small, nil, "has 3 bytes, not 5"},
	} {
		_, err := CopyFolder(c.dir, filepath.Join(t.TempDir(), "copy"))
		if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Where another log takes the place of the one that is read, the copy begins anew.
func TestCopyReplaced(t *testing.T) {
	dir, to := collection(t, newLog().base(9).commit("old")), filepath.Join(t.TempDir(), "copy")
	if _, err := attempt(dir, to); !errors.Is(err, errReplaced) {
		t.Fatal(err)
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, LogName), newLog().base(3).commit("new"), 0o600))
	must.Do(t, os.RemoveAll(to))
	c, err := CopyFolder(dir, to)
	if got := contents(t, to); err != nil || string(c.Note) != "new" || len(got) != 2 || got["0000000000000003.segment"] != "seg-3" {
		t.Errorf("%+v, %v, %v", c, err, got)
	}
}

func TestName(t *testing.T) {
	for collection, want := range map[string]string{"k-0a_1": "k-0a_1", "Kä": "%4B%C3%A4", ".a.b": "%2Ea.b", "a/b": "a%2Fb"} {
		if got := FolderName(collection); got != want {
			t.Errorf("%s: %s", collection, got)
		}
	}
}

// Nothing that a log says makes its reader fail otherwise than with an error.
func FuzzLog(f *testing.F) {
	f.Add([]byte(newLog().frame(1, []byte("schema")).base(1, 2).commit("note")))
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), LogName)
		must.Do(t, os.WriteFile(path, content, 0o600))
		in := must.Get(os.Open(path))(t)
		defer in.Close()
		if c, err := readLog(in); err == nil && (c.End < 0 || c.End > int64(len(content))) {
			t.Errorf("%+v", c)
		}
		readBase(content)
	})
}
