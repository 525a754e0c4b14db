package cache

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// writerVariable makes the test binary a process that stores answers. Its value is the folder, a
// name and a number of answers.
const writerVariable = "RACFLOW_TEST_CACHE_WRITER"

func TestMain(m *testing.M) {
	if dir, rest, ok := strings.Cut(os.Getenv(writerVariable), "|"); ok {
		name, count, _ := strings.Cut(rest, "|")
		n, _ := strconv.Atoi(count)
		os.Exit(writer(dir, name, n))
	}
	os.Exit(m.Run())
}

// writer stores answers, and prints each once it is stored. In between it reads the answers of all
// writers.
func writer(dir, name string, n int) int {
	c, err := Open(dir, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	for i := 0; err == nil && (i < n || n < 0); i++ {
		if err = c.Put(sdk.KeyOf(name, strconv.Itoa(i)), name, valueOf(name, i)); err == nil {
			fmt.Println(i)
			c.Get(sdk.KeyOf("shared", strconv.Itoa(i)))
			err = c.Put(sdk.KeyOf("shared", strconv.Itoa(i)), "shared", valueOf("shared", i))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func valueOf(name string, i int) []byte {
	return bytes.Repeat([]byte(fmt.Sprintf("%s %d;", name, i)), 1+i*7%300)
}

// open opens a cache that must not log anything.
func open(t testing.TB, dir string) *Cache {
	t.Helper()
	return openTelling(t, dir, func(line string) { t.Errorf("the log says %s", line) })
}

func openTelling(t testing.TB, dir string, tell func(string)) *Cache {
	t.Helper()
	c, err := Open(dir, slog.New(slog.NewTextHandler(lines(tell), nil)))
	must.Do(t, err)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

type lines func(string)

func (l lines) Write(p []byte) (int, error) { l(string(p)); return len(p), nil }

func put(t testing.TB, c *Cache, key string, value string) {
	t.Helper()
	must.Do(t, c.Put(sdk.KeyOf(key), "test", []byte(value)))
}

// want checks the value of a key in a cache; "-" is none.
func want(t testing.TB, c *Cache, key, value string) {
	t.Helper()
	got, ok := c.Get(sdk.KeyOf(key))
	if text := string(got); ok != (value != "-") || ok && text != value {
		t.Errorf("%s: got %.40q, %v, want %.40q", key, text, ok, value)
	}
}

func files(t testing.TB, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*"))
	must.Do(t, err)
	return all
}

func TestCache(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "below", "cache")
	c := open(t, dir)
	want(t, c, "a", "-")
	if _, err := os.Stat(dir); err == nil {
		t.Error("a cache that nothing was put into has made its folder")
	}
	put(t, c, "a", "1")
	put(t, c, "empty", "")
	put(t, c, "a", "2")
	want(t, c, "a", "2")
	want(t, c, "empty", "")
	large := strings.Repeat("x", sdk.MaxCached)
	put(t, c, "large", large)
	want(t, c, "large", large)
	if err := c.Put(sdk.KeyOf("larger"), "test", make([]byte, sdk.MaxCached+1)); sdk.CodeOf(err) != sdk.CodeInvalid {
		t.Errorf("a value that is too large: %v", err)
	}
	must.Do(t, c.Close())
	want(t, c, "a", "-")
	if err := c.Put(sdk.Key{}, "", nil); err == nil {
		t.Error("a closed cache takes answers")
	}

	again := open(t, dir)
	want(t, again, "a", "2")
	want(t, again, "empty", "")
	want(t, again, "large", large)
	put(t, again, "b", "3")
	if all := files(t, dir); len(all) != 1 {
		t.Errorf("a second process does not take over the file of the first: %q", all)
	}
	other := open(t, dir)
	put(t, other, "c", "4")
	want(t, other, "b", "3")
	if all := files(t, dir); len(all) != 2 {
		t.Errorf("two processes at a time write to %q", all)
	}
	s, err := ReadStats(dir)
	if err != nil || s.Entries != 5 || s.Files != 2 || s.Damages != 0 {
		t.Errorf("stats: %+v, %v", s, err)
	}
	if d := cmp.Diff([]About{{"test", 5, sdk.MaxCached + 3, s.About[0].Oldest, s.About[0].Newest}}, s.About); d != "" {
		t.Errorf("by description (-want +got):\n%s", d)
	}
}

// TestTheFirstAnswerStays adds the same key from the caches of two processes.
func TestTheFirstAnswerStays(t *testing.T) {
	dir := t.TempDir()
	one, two := open(t, dir), open(t, dir)
	add := func(c *Cache, value string) {
		t.Helper()
		must.Do(t, c.Add(sdk.KeyOf("a"), "test", []byte(value)))
	}
	want(t, two, "a", "-")
	add(one, "first")
	add(one, "again")
	add(two, "second")
	want(t, one, "a", "first")
	want(t, two, "a", "first")
	later := open(t, dir)
	want(t, later, "a", "first")
	add(later, "useful") // the value could have been read
	want(t, open(t, dir), "a", "useful")
	put(t, two, "a", "third")
	want(t, open(t, dir), "a", "third")
}

// A later answer replaces an earlier one even if the clock was set back in between.
func TestTheClockIsPutBack(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir)
	put(t, c, "a", "before")
	key := sdk.KeyOf("a")
	p := c.index[key]
	p.at += int64(time.Hour)
	c.index[key] = p
	put(t, c, "a", "after")
	want(t, c, "a", "after")
	want(t, open(t, dir), "a", "after")
}

// TestTornTail cuts off a file after every byte. Complete records stay, and the next process
// appends after them.
func TestTornTail(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir)
	put(t, c, "a", "first")
	one, err := os.Stat(c.own.path)
	must.Do(t, err)
	put(t, c, "b", strings.Repeat("second", 40)) // long enough that its rest could look like a record after the next one
	whole, err := os.ReadFile(c.own.path)
	must.Do(t, err)
	for cut := range whole {
		dir := t.TempDir()
		must.Do(t, os.WriteFile(filepath.Join(dir, "x"+answers.suffix), whole[:cut], 0o600))
		a := "first"
		if cut < int(one.Size()) {
			a = "-"
		}
		c := open(t, dir)
		want(t, c, "a", a)
		want(t, c, "b", "-")
		put(t, c, "c", "third")
		again := open(t, dir)
		for _, c := range []*Cache{c, again} {
			want(t, c, "a", a)
			want(t, c, "b", "-")
			want(t, c, "c", "third")
		}
		if all := files(t, dir); len(all) != 1 {
			t.Fatalf("cut off at %d: the file is not taken over: %q", cut, all)
		}
	}
}

// TestDamage inverts every byte of a file: no answer ever changes.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir)
	put(t, c, "a", "first")
	put(t, c, "b", "second")
	whole, err := os.ReadFile(c.own.path)
	must.Do(t, err)
	for at := range whole {
		dir := t.TempDir()
		broken := bytes.Clone(whole)
		broken[at] ^= 0xff
		must.Do(t, os.WriteFile(filepath.Join(dir, "x"+answers.suffix), broken, 0o600))
		var reported []string
		c := openTelling(t, dir, func(line string) { reported = append(reported, line) })
		lost := 0
		for key, value := range map[string]string{"a": "first", "b": "second"} {
			switch got, ok := c.Get(sdk.KeyOf(key)); {
			case !ok:
				lost++
			case string(got) != value:
				t.Errorf("byte %d: %s reads %q", at, key, got)
			}
		}
		if lost == 0 || len(reported) != 1 || !strings.Contains(reported[0], "is damaged at byte") {
			t.Errorf("byte %d: %d answers lost, reported %q", at, lost, reported)
		}
		put(t, c, "c", "third")
		again := openTelling(t, dir, func(string) {})
		want(t, again, "c", "third")
	}
}

// TestDamageAtTheSameTime stores an answer again that another process has damaged, while the clock stands still, as after it
// was set back. The damaged record never takes its place, even if its file is read later.
func TestDamageAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		first := open(t, dir)
		put(t, first, "a", "first")
		whole, err := os.ReadFile(first.own.path)
		must.Do(t, err)
		whole[len(whole)-1] ^= 0xff
		must.Do(t, os.WriteFile(first.own.path, whole, 0o600))

		second := openTelling(t, dir, func(string) {})
		if got, ok := second.Get(sdk.KeyOf("a")); ok {
			t.Fatalf("the damaged answer reads %q", got)
		}
		put(t, second, "a", "second")
		want(t, second, "a", "second")
		must.Do(t, os.Rename(first.own.path, filepath.Join(dir, "zz"+answers.suffix)))
		want(t, openTelling(t, dir, func(string) {}), "a", "second")
	})
}

func TestForeignFilesAreLeftAlone(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "newer"+answers.suffix)
	const newer = "racflow cache 9\nand more"
	must.Do(t, os.WriteFile(path, []byte(newer), 0o600))
	reported := 0
	c := openTelling(t, dir, func(string) { reported++ })
	put(t, c, "a", "1")
	want(t, c, "a", "1")
	if got, err := os.ReadFile(path); err != nil || string(got) != newer || reported != 1 {
		t.Errorf("the file holds %q, %v; reported %d times", got, err, reported)
	}
	if s, err := ReadStats(dir); err != nil || s.Damages != 1 || len(s.Damaged) != 1 || s.Entries != 1 {
		t.Errorf("stats: %+v, %v", s, err)
	}
}

func TestClear(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir)
	put(t, w, "old", "1")
	time.Sleep(time.Millisecond)
	between := time.Now()
	time.Sleep(time.Millisecond)
	put(t, w, "new", "22")
	reader := open(t, dir)

	got, err := Clear(dir, time.Now())
	if d := cmp.Diff(Cleared{Busy: 1}, got); d != "" || err != nil {
		t.Errorf("while it is written: %v (-want +got):\n%s", err, d)
	}
	must.Do(t, w.Close())
	got, err = Clear(dir, between)
	if d := cmp.Diff(Cleared{Records: 1, Bytes: headerSize + 1}, got); d != "" || err != nil {
		t.Errorf("older ones: %v (-want +got):\n%s", err, d)
	}
	fresh := open(t, dir)
	want(t, fresh, "old", "-")
	want(t, fresh, "new", "22")
	got, err = Clear(dir, between)
	if d := cmp.Diff(Cleared{}, got); d != "" || err != nil {
		t.Errorf("nothing is older: %v (-want +got):\n%s", err, d)
	}

	// A process with the old file open continues to read it, and writes to an existing file.
	want(t, reader, "old", "1")
	want(t, reader, "new", "22")
	put(t, reader, "more", "3")
	want(t, open(t, dir), "more", "3")
	must.Do(t, reader.Close())
	if got, err = Clear(dir, time.Now()); err != nil || got.Records != 2 || got.Busy != 0 {
		t.Errorf("all: %+v, %v", got, err)
	}
	if all := files(t, dir); len(all) != 0 {
		t.Errorf("left: %q", all)
	}
	if got, err = Clear(filepath.Join(dir, "missing"), time.Now()); err != nil || got != (Cleared{}) {
		t.Errorf("a cache that is not there: %+v, %v", got, err)
	}
}

// TestClearMeanwhile clears the cache while goroutines read and write.
func TestClearMeanwhile(t *testing.T) {
	dir := t.TempDir()
	stop := make(chan struct{})
	var clearing sync.WaitGroup
	clearing.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if _, err := Clear(dir, time.Now().Add(-2*time.Millisecond)); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	var all sync.WaitGroup
	for w := range 3 {
		all.Go(func() {
			for round := range 20 {
				c, err := Open(dir, slog.New(slog.NewTextHandler(lines(func(s string) { t.Error(s) }), nil)))
				if err != nil {
					t.Error(err)
					return
				}
				for i := range 10 {
					key := fmt.Sprint(w, round, i)
					put(t, c, key, key)
					want(t, c, key, key)
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	close(stop)
	clearing.Wait()
}

func TestGoroutines(t *testing.T) {
	dir := t.TempDir()
	caches := []*Cache{open(t, dir), open(t, dir)}
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			c := caches[w%2]
			for i := range 200 {
				key := fmt.Sprint(w, "-", i)
				put(t, c, key, key)
				want(t, c, key, key)
				caches[1-w%2].Get(sdk.KeyOf(key))
			}
		})
	}
	all.Wait()
	again := open(t, dir)
	for w := range 8 {
		for i := range 200 {
			want(t, again, fmt.Sprint(w, "-", i), fmt.Sprint(w, "-", i))
		}
	}
}

func startWriter(t *testing.T, dir, name string, n int) (*exec.Cmd, io.Reader) {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%s|%d", writerVariable, dir, name, n))
	c.Stderr = lines(func(s string) { t.Errorf("%s says %s", name, s) })
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	must.Do(t, err)
	return c, out
}

func TestProcesses(t *testing.T) {
	dir := t.TempDir()
	const n = 300
	var all sync.WaitGroup
	for w := range 4 {
		c, out := startWriter(t, dir, fmt.Sprint("writer", w), n)
		all.Go(func() {
			_, _ = io.Copy(io.Discard, out)
			if err := c.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	c := open(t, dir)
	for i := range n {
		for _, name := range []string{"writer0", "writer1", "writer2", "writer3", "shared"} {
			if got, ok := c.Get(sdk.KeyOf(name, strconv.Itoa(i))); !ok || !bytes.Equal(got, valueOf(name, i)) {
				t.Fatalf("%s %d: got %q, %v", name, i, got, ok)
			}
		}
	}
	if s, err := ReadStats(dir); err != nil || s.Entries != 5*n || s.Files > 4 || s.Damages != 0 {
		t.Errorf("stats: %+v, %v", s, err)
	}
}

// TestKill kills a process while it stores answers: all answers that it reported are there.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	for round := range 5 {
		name := fmt.Sprint("killed", round)
		c, out := startWriter(t, dir, name, -1)
		kept := -1
		in := bufio.NewScanner(out)
		for in.Scan() {
			var err error
			if kept, err = strconv.Atoi(in.Text()); err != nil {
				t.Fatal(err)
			}
			if kept == 100+round*37 {
				must.Do(t, c.Process.Kill())
			}
		}
		if c.Wait() == nil || kept < 100 {
			t.Fatalf("it was not killed: %d kept", kept)
		}
		reader := open(t, dir)
		for i := range kept + 1 {
			if got, ok := reader.Get(sdk.KeyOf(name, strconv.Itoa(i))); !ok || !bytes.Equal(got, valueOf(name, i)) {
				t.Fatalf("round %d: answer %d of %d is lost: %q", round, i, kept, got)
			}
		}
	}
	if s, err := ReadStats(dir); err != nil || s.Files != 1 || s.Damages != 0 {
		t.Errorf("stats: %+v, %v", s, err)
	}
}
