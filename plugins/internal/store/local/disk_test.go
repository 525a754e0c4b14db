//go:build unix

package local

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

const fullDisk = "RACFLOW_TEST_FULL_DISK"

// inChild runs the test again in a separate process, and returns true there. A limit applies to a whole process, and
// go test also writes in this one.
func inChild(t *testing.T) bool {
	t.Helper()
	if os.Getenv(fullDisk) != "" {
		return true
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), fullDisk+"=1")
	if output, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
	return false
}

// TestFullDiskAtEveryStep gives commits that write and merge files less and less space. Whatever fails, committed
// rows stay, and the collection takes changes again once there is space and it is reopened. The test limits the size
// of files instead: a write beyond the limit fails with EFBIG, where a full disk gives ENOSPC.
func TestFullDiskAtEveryStep(t *testing.T) {
	if !inChild(t) {
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var before syscall.Rlimit
	must.Do(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before))
	failed := 0
	for room := uint64(100); room < 60_000; room += 1 + room/6 {
		dir := t.TempDir()
		s := openStore(t, dir)
		s.limits = limits{rows: 8, bytes: 1 << 20, spill: 2}
		mustOpen(t, s, 2)
		committed := map[string]bool{}
		must.Do(t, s.Commit(ctx, "c", []byte("0")))
		must.Do(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: room, Max: before.Max}))
		for n := range 20 {
			var batch []sdk.Entry
			for i := range 1 + n%3*9 {
				batch = append(batch, entry(fmt.Sprint(n, "/", i), fmt.Sprint("word", n, " and text"), 1, float32(i)))
			}
			err := s.Put(ctx, "c", batch)
			if err == nil {
				err = s.Commit(ctx, "c", fmt.Append(nil, n))
			}
			if err != nil {
				if !strings.Contains(err.Error(), "it is as it was at the last commit") {
					t.Errorf("room for %d: %v", room, err)
				}
				failed++
				for what, err := range map[string]error{
					"put":    s.Put(ctx, "c", batch[:1]),
					"delete": s.Delete(ctx, "c", []string{"0/0"}),
					"commit": s.Commit(ctx, "c", []byte("note")),
				} {
					if err == nil || !strings.Contains(err.Error(), "open it again") {
						t.Errorf("room for %d, %s after changes were dropped: %v", room, what, err)
					}
				}
				break
			}
			for _, e := range batch {
				committed[e.ID] = true
			}
		}
		must.Do(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before))
		if all := everything(t, s); len(all) != len(committed) {
			t.Fatalf("room for %d: %d entries, want %d", room, len(all), len(committed))
		}
		mustOpen(t, s, 2)
		commit(t, s, nil, entry("new", "text", 1, 0))
		s.Close()
		must.Do(t, check(ctx, Location{dir, "c"}))
		if all := everything(t, openSmall(t, dir)); len(all) != len(committed)+1 {
			t.Fatalf("room for %d, opened again: %d entries, want %d", room, len(all), len(committed)+1)
		}
	}
	if text := explain(fmt.Errorf("write: %w", syscall.ENOSPC)).Error(); !strings.Contains(text, "free some space") {
		t.Errorf("advice for a full disk: %s", text)
	}
	if failed < 5 {
		t.Errorf("only %d disks were full", failed)
	}
}
