package transaction

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/racflow/racflow/plugins/store/milvus/internal/row"
	"github.com/racflow/racflow/plugins/store/milvus/internal/table"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/backoff"
)

// A lease is a row that says who writes, and until when. Milvus cannot compare
// and swap, so a writer writes the row and reads it again after a while: of two
// that took it at the same time the later one has it (Fischer's algorithm, in
// Lamport, "A Fast Mutual Exclusion Algorithm", ACM TOCS 1987). That relies on a
// write taking less than that while; a commit therefore checks the lease again.
// What it cannot prevent is a writer that is held up for longer than the lease
// lasts between that check and its commit.
const (
	leaseTime  = 30 * time.Second // without a renewal
	leaseRenew = 8 * time.Second
	leaseWait  = 100 * time.Millisecond
)

// KeyLease is the key of the lease's row.
var KeyLease = row.SystemKey("lease")

// lease is what the row says. The clocks of machines may differ by a few seconds.
type lease struct {
	Holder  string `json:"holder"`  // empty: nobody writes
	Process string `json:"process"` // which it is, for people
	Machine string `json:"machine"`
	PID     int    `json:"pid"`
	Until   int64  `json:"until"` // in seconds since 1970
	Last    int64  `json:"last"`  // number that was last given to a commit, done or not
}

// takeLease makes this process the writer.
func takeLease(ctx context.Context, t *table.Table) (lease, error) {
	now, err := readLease(ctx, t)
	if err != nil {
		return lease{}, err
	}
	if err := now.free(); err != nil {
		return lease{}, sdk.Transient(fmt.Errorf("collection %q: %w", t.Collection, err), time.Second)
	}
	mine := lease{
		Holder:  fmt.Sprintf("%016x", rand.Uint64()),
		Process: fmt.Sprintf("process %d on %s", os.Getpid(), hostname()),
		Machine: machine(), PID: os.Getpid(), Last: now.Last,
	}
	if err := mine.renew(ctx, t); err != nil {
		return lease{}, err
	}
	if err := backoff.Sleep(ctx, leaseWait); err != nil {
		return lease{}, err
	}
	return mine, mine.check(ctx, t)
}

// check makes sure that a lease is still the one on the server.
func (l lease) check(ctx context.Context, t *table.Table) error {
	now, err := readLease(ctx, t)
	if err == nil && now.Holder != l.Holder {
		err = sdk.Transient(fmt.Errorf("collection %q is written by another process, %s", t.Collection, now.Process), time.Second)
	}
	return err
}

// free says why a lease cannot be taken. That of a process that has ended can be:
// on this machine that is known, for others the lease has to end.
func (l lease) free() error {
	left := time.Until(time.Unix(l.Until, 0))
	if l.Holder == "" || left <= 0 || l.Machine == machine() && l.PID != os.Getpid() && hasEnded(l.PID) {
		return nil
	}
	return fmt.Errorf("it is written by another process, %s (its lease ends in %v)", l.Process, left.Round(time.Second))
}

func readLease(ctx context.Context, t *table.Table) (l lease, err error) {
	texts, err := t.System(ctx, KeyLease)
	if text := texts[KeyLease]; err == nil && text != "" {
		if err = json.Unmarshal([]byte(text), &l); err != nil {
			err = fmt.Errorf("collection %q: its lease is not readable: %w", t.Collection, err)
		}
	}
	return l, err
}

// renew begins or prolongs a lease.
func (l *lease) renew(ctx context.Context, t *table.Table) error {
	l.Until = time.Now().Add(leaseTime).Unix()
	return l.write(ctx, t)
}

// release lets other writers in.
func (l lease) release(ctx context.Context, t *table.Table) error {
	l.Holder = ""
	return l.write(ctx, t)
}

func (l lease) write(ctx context.Context, t *table.Table) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return t.PutSystem(ctx, row.System(KeyLease, string(text)))
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}

// machine names the machine, and the container on it, that process ids belong to.
func machine() string {
	parts := []string{hostname(), runtime.GOOS}
	if id, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		parts = append(parts, strings.TrimSpace(string(id)))
	}
	if space, err := os.Readlink("/proc/self/ns/pid"); err == nil {
		parts = append(parts, space)
	}
	return strings.Join(parts, " ")
}

// hasEnded reports that there is no process with an id; false where that cannot be
// known.
func hasEnded(pid int) bool {
	if _, err := os.Stat("/proc/self"); err != nil {
		return false
	}
	_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	return errors.Is(err, os.ErrNotExist)
}
