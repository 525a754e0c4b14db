package milvus

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

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/backoff"
)

// A lease is a row that says who writes, and until when. Milvus cannot compare
// and swap, so the row is written, and read again after a while: of two that
// took it at the same time the later one has it (Fischer's algorithm, in
// Lamport, "A Fast Mutual Exclusion Algorithm", ACM TOCS 1987). That relies on a
// write taking less than that while; a commit therefore looks at the lease
// again. What is left is a writer that is held up for longer than the lease
// lasts between that look and its commit.
const (
	leaseTime  = 30 * time.Second // without a renewal
	leaseRenew = 8 * time.Second
	leaseWait  = 100 * time.Millisecond
)

// lease is what the row says. The times of machines may differ by a few seconds.
type lease struct {
	Holder  string `json:"holder"`  // empty: nobody writes
	Process string `json:"process"` // which it is, for people
	Machine string `json:"machine"`
	PID     int    `json:"pid"`
	Until   int64  `json:"until"` // in seconds since 1970
	Last    int64  `json:"last"`  // number that was last given to a commit, done or not
}

// takeLease makes this process the writer.
func (c *collection) takeLease(ctx context.Context) (lease, error) {
	now, err := c.readLease(ctx)
	if err != nil {
		return lease{}, err
	}
	if err := now.free(); err != nil {
		return lease{}, sdk.Transient(fmt.Errorf("collection %q: %w", c.name, err), time.Second)
	}
	hostname, err := os.Hostname()
	if err != nil {
		hostname = "unknown"
	}
	mine := lease{
		Holder:  fmt.Sprintf("%016x", rand.Uint64()),
		Process: fmt.Sprintf("process %d on %s", os.Getpid(), hostname),
		Machine: machine(hostname), PID: os.Getpid(), Last: now.Last,
	}
	if err := c.writeLease(ctx, &mine); err != nil {
		return lease{}, err
	}
	if err := backoff.Sleep(ctx, leaseWait); err != nil {
		return lease{}, err
	}
	return mine, c.holds(ctx, mine)
}

// holds checks that a lease is still the one on the server.
func (c *collection) holds(ctx context.Context, mine lease) error {
	now, err := c.readLease(ctx)
	if err == nil && now.Holder != mine.Holder {
		err = sdk.Transient(fmt.Errorf("collection %q is written by another process, %s", c.name, now.Process), time.Second)
	}
	return err
}

// free tells why a lease cannot be taken. One whose holder is gone can be: on
// this machine that is seen, elsewhere the time has to pass.
func (l lease) free() error {
	left := time.Until(time.Unix(l.Until, 0))
	if l.Holder == "" || left <= 0 {
		return nil
	}
	hostname, err := os.Hostname()
	if err == nil && l.Machine == machine(hostname) && l.PID != os.Getpid() && gone(l.PID) {
		return nil
	}
	return fmt.Errorf("it is written by another process, %s (its lease ends in %v)", l.Process, left.Round(time.Second))
}

func (c *collection) readLease(ctx context.Context) (lease, error) {
	texts, err := c.special(ctx, []string{keyLease})
	if err != nil {
		return lease{}, err
	}
	var l lease
	if text, ok := texts[keyLease]; ok {
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			return l, fmt.Errorf("collection %q: its lease is not readable: %w", c.name, err)
		}
	}
	return l, nil
}

// writeLease begins or prolongs a lease.
func (c *collection) writeLease(ctx context.Context, l *lease) error {
	l.Until = time.Now().Add(leaseTime).Unix()
	return c.putLease(ctx, *l)
}

func (c *collection) putLease(ctx context.Context, l lease) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return c.upsert(ctx, []row{specialRow(keyLease, string(text))})
}

// machine names the machine, and the container on it, that process numbers
// belong to.
func machine(hostname string) string {
	parts := []string{hostname, runtime.GOOS}
	if id, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		parts = append(parts, strings.TrimSpace(string(id)))
	}
	if space, err := os.Readlink("/proc/self/ns/pid"); err == nil {
		parts = append(parts, space)
	}
	return strings.Join(parts, " ")
}

// gone reports that there is no process with a number; where that cannot be
// known, that there may be.
func gone(pid int) bool {
	if _, err := os.Stat("/proc/self"); err != nil {
		return false
	}
	_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	return errors.Is(err, os.ErrNotExist)
}
