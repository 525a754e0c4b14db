package local

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/racflow/racflow/plugins/internal/store/segment"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// Environment variables that turn the test binary into a writer or a reader of a folder, and the
// variable for the number of kills.
const (
	crashDir    = "RACFLOW_TEST_CRASH_DIR"
	readDir     = "RACFLOW_TEST_READ_DIR"
	crashRounds = "RACFLOW_TEST_CRASH_ROUNDS"
)

func TestMain(m *testing.M) {
	for dir, run := range map[string]func(string) error{crashDir: writeForever, readDir: readUntilTold} {
		if dir := os.Getenv(dir); dir != "" {
			if err := run(dir); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

// generationSize is the number of entries that commit n of a writer puts. The commit also deletes
// those of commit n-lifetime, so that logs are rewritten and segments merged all the time.
const (
	generationSize = 30
	lifetime       = 25
)

// crashLimits make most commits small; some write the log's rows to a file, and large ones write
// several files.
var crashLimits = limits{rows: 4 * generationSize, bytes: 1 << 20, spill: 2}

func generation(n int) (all []sdk.Entry, ids []string) {
	size := generationSize
	if n%11 == 0 {
		size *= 20
	}
	text := strings.Repeat(fmt.Sprint("text ", n, " "), 10)
	for i := range size {
		e := entry(fmt.Sprintf("%d/%d", n, i), text, float32(n), 1)
		all, ids = append(all, e), append(ids, e.ID)
	}
	return all, ids
}

// writeForever commits generations. Each has its number as the note; the number is printed once the commit has
// returned.
func writeForever(dir string) error {
	opened, err := open(ctx, sdk.Setup{StateDir: dir}, config{K1: 1.2, B: 0.75, Sync: true})
	if err != nil {
		return err
	}
	s, _ := opened.(*store)
	s.limits = crashLimits
	c, err := s.Open(ctx, "c", sdk.Schema{Dimension: 2, Analyzer: "standard"})
	if err != nil {
		return err
	}
	n, _ := strconv.Atoi(string(c.Note))
	for {
		n++
		entries, _ := generation(n)
		_, old := generation(n - lifetime)
		for part := range slices.Chunk(entries, generationSize/2) { // several frames per commit
			if err := s.Put(ctx, "c", part); err != nil {
				return err
			}
		}
		if err := s.Delete(ctx, "c", old); err != nil {
			return err
		}
		if err := s.Commit(ctx, "c", []byte(strconv.Itoa(n))); err != nil {
			return err
		}
		fmt.Println(n)
	}
}

func TestKilledWriterLosesNoCommit(t *testing.T) {
	rounds := 20
	if more, err := strconv.Atoi(os.Getenv(crashRounds)); err == nil {
		rounds = more
	}
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	total, orphans, torn := 0, 0, 0
	for round := range rounds {
		acknowledged := runAndKill(t, dir, time.Duration(20+r.IntN(120))*time.Millisecond)
		files, _ := filepath.Glob(filepath.Join(dir, "c", "*"+segment.SegmentSuffix))
		s := openStore(t, dir)
		c := mustOpen(t, s, 2)
		now := s.collections["c"].now.Load()
		if len(files) > len(now.Listed) {
			orphans++
		}
		if logSize(t, dir) > now.End {
			torn++
		}
		n := 0
		if len(c.Note) > 0 {
			n, _ = strconv.Atoi(string(c.Note))
		}
		if n < acknowledged || acknowledged > 0 && n > acknowledged+1 {
			t.Fatalf("round %d: commit %d was acknowledged and the store is at %d", round, acknowledged, n)
		}
		want := map[string]string{}
		for g := max(1, n-lifetime+1); g <= n; g++ {
			entries, _ := generation(g)
			for _, e := range entries {
				want[e.ID] = e.Text
			}
		}
		all := everything(t, s)
		if len(all) != len(want) {
			t.Fatalf("round %d: %d entries after commit %d, want %d", round, len(all), n, len(want))
		}
		for _, e := range all {
			if want[e.ID] != e.Text {
				t.Fatalf("round %d: entry %q is not of commit %d", round, e.ID, n)
			}
		}
		s.Close()
		if round%20 == 19 {
			must.Do(t, check(ctx, Location{dir, "c"}))
		}
		total = n
	}
	t.Logf("%d rounds, %d commits; killed with files written but not listed in %d rounds, with uncommitted frames in %d", rounds, total, orphans, torn)
	if total < rounds || orphans+torn == 0 {
		t.Errorf("only %d commits in %d rounds, %d of which were killed in a commit", total, rounds, orphans+torn)
	}
}

// runAndKill runs a writer and kills it some time after its first commit. It returns the number of the last commit
// that the writer reported.
func runAndKill(t *testing.T, dir string, after time.Duration) (last int) {
	t.Helper()
	writer := exec.Command(os.Args[0], "-test.run=^$")
	writer.Env = append(os.Environ(), crashDir+"="+dir)
	output, err := writer.StdoutPipe()
	must.Do(t, err)
	must.Do(t, writer.Start())
	limit := time.AfterFunc(time.Minute, func() { writer.Process.Kill() })
	lines := bufio.NewScanner(output)
	for killing := false; lines.Scan(); {
		if last, err = strconv.Atoi(lines.Text()); err != nil {
			t.Fatalf("writer: %s", lines.Text())
		}
		if !killing {
			killing = true
			time.AfterFunc(after, func() { writer.Process.Kill() })
		}
	}
	io.Copy(io.Discard, output)
	writer.Wait()
	limit.Stop()
	return last
}

// TestReadersBesideAWriter searches during commits, merges and compaction, in this process and in another. Every
// answer must be from one commit: all of a generation or none of it.
func TestReadersBesideAWriter(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	s.config.Sync = false
	s.limits = crashLimits
	mustOpen(t, s, 2)
	must.Do(t, s.Commit(ctx, "c", []byte("0")))

	reader := exec.Command(os.Args[0], "-test.run=^$")
	reader.Env = append(os.Environ(), readDir+"="+dir)
	stdin, err := reader.StdinPipe()
	must.Do(t, err)
	var said strings.Builder
	reader.Stdout = &said
	must.Do(t, reader.Start())

	writing, done := context.WithCancel(ctx)
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for writing.Err() == nil {
				if err := readOnce(s, false); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for n := 1; n <= 150 && !t.Failed(); n++ {
		entries, _ := generation(n)
		_, old := generation(n - 1)
		must.Do(t, s.Put(ctx, "c", entries))
		must.Do(t, s.Delete(ctx, "c", old))
		must.Do(t, s.Commit(ctx, "c", []byte(strconv.Itoa(n))))
		if n%20 == 0 {
			_, err := Compact(ctx, Location{dir, "c"})
			must.Do(t, err)
			mustOpen(t, s, 2)
		}
	}
	done()
	readers.Wait()
	must.Do(t, stdin.Close())
	if err := reader.Wait(); err != nil || !strings.Contains(said.String(), "read ") {
		t.Errorf("the other process: %v\n%s", err, said.String())
	}
	t.Logf("the other process: %s", said.String())
}

// readUntilTold reads until its standard input ends.
func readUntilTold(dir string) error {
	opened, err := open(ctx, sdk.Setup{StateDir: dir}, config{K1: 1.2, B: 0.75, Sync: true})
	if err != nil {
		return err
	}
	s, _ := opened.(*store)
	if _, err := s.Open(ctx, "c", sdk.Schema{Dimension: 2, Analyzer: "standard"}); err != nil {
		return err
	}
	told := make(chan struct{})
	go func() {
		io.Copy(io.Discard, os.Stdin)
		close(told)
	}()
	for times := 1; ; times++ {
		if err := readOnce(s, true); err != nil {
			return err
		}
		select {
		case <-told:
			fmt.Println("read", times, "times")
			return nil
		default:
		}
	}
}

// readOnce checks that everything read at one time is from one commit. It reopens the collection only if nobody
// writes in this process, since reopening drops staged changes.
func readOnce(s *store, reopen bool) error {
	hits, err := s.Search(ctx, "c", sdk.Search{Mode: sdk.ModeHybrid, NumCandidates: 1000}, []sdk.Query{{Text: "text", Vector: []float32{1, 1}}})
	if err != nil {
		return err
	}
	for _, side := range [][]sdk.Hit{hits[0].Dense, hits[0].Lexical} {
		if len(side) == 0 {
			continue
		}
		first, _, _ := strings.Cut(side[0].ID, "/")
		n, _ := strconv.Atoi(first)
		whole, _ := generation(n)
		if len(side) != len(whole) {
			return fmt.Errorf("a search found %d entries, want all %d of one commit", len(side), len(whole))
		}
		for _, h := range side {
			if !strings.HasPrefix(h.ID, first+"/") {
				return fmt.Errorf("a search found %s and %s of different commits", side[0].ID, h.ID)
			}
		}
	}
	page, err := s.Scan(ctx, "c", sdk.Scan{Texts: true})
	if err == nil && len(page.Entries)%generationSize != 0 {
		err = fmt.Errorf("a scan found %d entries", len(page.Entries))
	}
	if err == nil {
		_, err = s.Get(ctx, "c", []string{"1/0", "150/0"})
	}
	if err == nil && reopen {
		_, err = s.Open(ctx, "c", sdk.Schema{Dimension: 2, Analyzer: "standard"})
	}
	return err
}
