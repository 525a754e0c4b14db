package local

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/racflow/racflow/sdk"
)

// crashDir names the environment variable that makes the test binary a writer.
const crashDir = "RACFLOW_TEST_CRASH_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		if err := writeForever(dir); err != nil {
			fmt.Println(err)
		}
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// generationSize is the number of entries that commit n of a writer puts. It
// also deletes those of commit n-3, so that logs are rewritten all the time.
const generationSize = 30

func generation(n int) (all []sdk.Entry, ids []string) {
	for i := range generationSize {
		e := entry(fmt.Sprintf("%d/%d", n, i), strings.Repeat(fmt.Sprint("text ", n, " "), 50), float32(n), 1)
		all, ids = append(all, e), append(ids, e.ID)
	}
	return all, ids
}

// writeForever commits generations, each with its number as the note, and
// prints the number once the commit has returned.
func writeForever(dir string) error {
	s, err := open(ctx, sdk.Setup{StateDir: dir}, config{K1: 1.2, B: 0.75, Sync: true})
	if err != nil {
		return err
	}
	c, err := s.Open(ctx, "c", sdk.Schema{Dimension: 2, Analyzer: "standard"})
	if err != nil {
		return err
	}
	n, _ := strconv.Atoi(string(c.Note))
	for {
		n++
		entries, _ := generation(n)
		_, old := generation(n - 3)
		for half := range 2 { // several frames per commit
			if err := s.Put(ctx, "c", entries[half*generationSize/2:][:generationSize/2]); err != nil {
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
	const rounds = 20
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	total := 0
	for round := range rounds {
		acknowledged := runAndKill(t, dir, time.Duration(20+r.IntN(120))*time.Millisecond)
		s := openStore(t, dir)
		c := mustOpen(t, s, 2)
		n := 0
		if len(c.Note) > 0 {
			n, _ = strconv.Atoi(string(c.Note))
		}
		if n < acknowledged || acknowledged > 0 && n > acknowledged+1 {
			t.Fatalf("round %d: commit %d was acknowledged and the store is at %d", round, acknowledged, n)
		}
		want := map[string]string{}
		for g := max(1, n-2); g <= n; g++ {
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
		total = n
	}
	if total < rounds {
		t.Errorf("only %d commits in %d rounds", total, rounds)
	}
}

// runAndKill runs a writer, kills it some time after its first commit and
// returns the number of the last commit that it saw through.
func runAndKill(t *testing.T, dir string, after time.Duration) (last int) {
	t.Helper()
	writer := exec.Command(os.Args[0], "-test.run=^$")
	writer.Env = append(os.Environ(), crashDir+"="+dir)
	output, err := writer.StdoutPipe()
	must(t, err)
	must(t, writer.Start())
	limit := time.AfterFunc(10*time.Second, func() { writer.Process.Kill() })
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

// TestReadersBesideAWriter searches while commits and rewrites go on. Every
// answer must be of one commit: all of a generation or none of it.
func TestReadersBesideAWriter(t *testing.T) {
	s := openStore(t, t.TempDir())
	s.config.Sync = false
	mustOpen(t, s, 2)
	writing, done := context.WithCancel(ctx)
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for writing.Err() == nil {
				if err := readOnce(s); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for n := 1; n <= 150 && !t.Failed(); n++ {
		entries, _ := generation(n)
		_, old := generation(n - 1)
		must(t, s.Put(ctx, "c", entries))
		must(t, s.Delete(ctx, "c", old))
		must(t, s.Commit(ctx, "c", []byte(strconv.Itoa(n))))
	}
	done()
	readers.Wait()
}

func readOnce(s *store) error {
	hits, err := s.Search(ctx, "c", sdk.Search{Mode: sdk.ModeHybrid, Depth: 1000}, []sdk.Query{{Text: "text", Vector: []float32{1, 1}}})
	if err != nil {
		return err
	}
	for _, side := range [][]sdk.Hit{hits[0].Dense, hits[0].Lexical} {
		if len(side) != generationSize && len(side) != 0 {
			return fmt.Errorf("a search found %d entries, want all %d of one commit", len(side), generationSize)
		}
		for _, h := range side {
			if g, _, _ := strings.Cut(h.ID, "/"); !strings.HasPrefix(side[0].ID, g+"/") {
				return fmt.Errorf("a search found %s and %s of different commits", side[0].ID, h.ID)
			}
		}
	}
	page, err := s.Scan(ctx, "c", sdk.Scan{Texts: true})
	if err == nil && len(page.Entries) != generationSize && len(page.Entries) != 0 {
		err = fmt.Errorf("a scan found %d entries", len(page.Entries))
	}
	if err == nil {
		_, err = s.Get(ctx, "c", []string{"1/0", "150/0"})
	}
	if err == nil {
		_, err = s.Open(ctx, "c", sdk.Schema{Dimension: 2, Analyzer: "standard"})
	}
	return err
}
