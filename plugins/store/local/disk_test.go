//go:build unix

package local

import (
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/racflow/racflow/sdk"
)

// TestFullDisk limits the size of files instead: a write beyond it fails with
// EFBIG where a full disk gives ENOSPC.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	s := openSmall(t, dir)
	must(t, s.Put(ctx, "c", []sdk.Entry{entry("a", "red", 1, 0)}))
	must(t, s.Commit(ctx, "c", []byte("note")))
	size := logSize(t, dir)

	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var before syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before))
	must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: uint64(size) + 1000, Max: before.Max}))
	must(t, s.Put(ctx, "c", []sdk.Entry{entry("b", "red", 1, 0)}))
	err := s.Put(ctx, "c", []sdk.Entry{entry("c", strings.Repeat("x", 2000), 1, 0)})
	must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before))

	if err == nil || !strings.Contains(err.Error(), "it is as it was at the last commit") {
		t.Fatalf("put on a full disk: %v", err)
	}
	if logSize(t, dir) != size {
		t.Errorf("the log has %d bytes, %d at the last commit", logSize(t, dir), size)
	}
	for what, err := range map[string]error{
		"put":    s.Put(ctx, "c", []sdk.Entry{entry("d", "green", 1, 0)}),
		"delete": s.Delete(ctx, "c", []string{"a"}),
		"commit": s.Commit(ctx, "c", []byte("note")),
	} {
		if err == nil || !strings.Contains(err.Error(), "open it again") {
			t.Errorf("%s after changes were dropped: %v", what, err)
		}
	}
	mustOpen(t, s, 2)
	must(t, s.Put(ctx, "c", []sdk.Entry{entry("d", "green", 1, 0)}))
	must(t, s.Commit(ctx, "c", nil))
	if got := ids(everything(t, openSmall(t, dir))); got != "a d" {
		t.Errorf("entries %q", got)
	}
	if text := explain(fmt.Errorf("write: %w", syscall.ENOSPC)).Error(); !strings.Contains(text, "free some space") {
		t.Errorf("advice for a full disk: %s", text)
	}
}
