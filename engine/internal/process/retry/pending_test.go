package retry_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/internal/process/retry"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// service works on rows for some time. It records its calls.
type service struct {
	mu     sync.Mutex
	calls  []string
	asks   int
	polls  int            // pending polls before the results are there
	pause  time.Duration  // as sdk.Pending.PollAfter
	fails  error          // error of the next collection
	during func()         // called with each request, before its reply
	notes  map[int]string // by the number of remaining polls
}

func (s *service) note(polls int) string { return s.notes[polls] }

func (s *service) call(_ context.Context, handle string, rows []int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if handle == "" {
		s.asks++
		s.calls = append(s.calls, fmt.Sprint("ask ", rows))
		if s.during != nil {
			s.during()
		}
		return &sdk.Pending{Handle: fmt.Sprintf("h%d", s.asks), PollAfter: s.pause, Note: s.note(s.polls)}
	}
	s.calls = append(s.calls, fmt.Sprint(handle, " ", rows))
	if s.polls--; s.polls >= 0 {
		return &sdk.Pending{Handle: handle, PollAfter: s.pause, Note: s.note(s.polls)}
	}
	err := s.fails
	s.fails = nil
	return err
}

// bench is a folder of handles, and records the work on it.
type bench struct {
	service
	dir     string
	settled []string
	reports []retry.PendingWait
}

func newBench(t *testing.T) *bench {
	return &bench{dir: filepath.Join(t.TempDir(), "pending"), service: service{pause: time.Hour}}
}

// do works on rows with newly opened Handles, as a new process does.
func (b *bench) do(ctx context.Context, rows ...int) error {
	return b.work(retry.OpenHandles(b.dir, func(w retry.PendingWait) { b.reports = append(b.reports, w) })).Do(ctx, rows)
}

func (b *bench) work(book *retry.Handles) retry.PendingWork {
	return retry.PendingWork{
		Handles: book, Stage: "sample.s", Key: func(row int) string { return retry.HandleKey("s", fmt.Sprint(row)) }, Call: b.call,
		Collected: func(_ int, what string) { // groups are collected in parallel
			b.mu.Lock()
			defer b.mu.Unlock()
			b.settled = append(b.settled, what)
		},
	}
}

func (b *bench) files(t *testing.T) int {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(b.dir, "*"))
	must.Do(t, err)
	return len(all)
}

func (b *bench) want(t *testing.T, calls ...string) {
	t.Helper()
	slices.Sort(b.calls) // groups are collected in parallel
	slices.Sort(calls)
	if d := cmp.Diff(calls, b.calls); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
	b.calls = nil
}

func TestCollects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.polls = 1
		start := time.Now()
		must.Do(t, b.do(t.Context(), 1, 2, 3))
		b.want(t, "ask [1 2 3]", "h1 [1 2 3]", "h1 [1 2 3]")
		if took := time.Since(start); took != 2*time.Hour {
			t.Errorf("it waited %v", took)
		}
		if n := len(b.reports); n != 240 || b.reports[0] != (retry.PendingWait{Stage: "sample.s", For: 30 * time.Second}) {
			t.Errorf("%d reports, the first after %v", n, b.reports[0])
		}
		// Entries stay until the results are stored.
		must.Do(t, b.do(t.Context(), 1))
		b.want(t, "h1 [1]")
	})
}

// A stage's note is reported at once and when it changes, and otherwise now and then.
func TestNotes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.polls, b.pause = 5, 10*time.Second
		b.notes = map[int]string{5: "0 done", 4: "0 done", 3: "2 done", 2: "3 done", 1: "4 done", 0: "4 done"}
		must.Do(t, b.do(t.Context(), 1))
		var got []string
		for _, w := range b.reports {
			got = append(got, fmt.Sprint(w.Stage, " ", w.Note, " ", w.For))
		}
		if d := cmp.Diff([]string{"sample.s 0 done 0s", "sample.s 2 done 30s", "sample.s 4 done 1m0s"}, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		b.reports, b.polls, b.pause, b.notes = nil, 3, time.Hour, map[int]string{}
		for polls := range 4 {
			b.notes[polls] = "9 done"
		}
		must.Do(t, b.do(t.Context(), 2))
		if n := len(b.reports); n != 25 || b.reports[1].For != 10*time.Minute {
			t.Errorf("%d reports in four hours, the second after %v", n, b.reports[1].For)
		}
	})
}

// An interrupted wait ends at once, the handle is on the disk, and a part of the rows is collected
// with it later.
func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			time.Sleep(time.Minute)
			if b.files(t) != 1 {
				t.Error("it waits, and the handle is not kept")
			}
			cancel()
		}()
		start := time.Now()
		if err := b.do(ctx, 1, 2, 3); !errors.Is(err, context.Canceled) || time.Since(start) != time.Minute {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		b.want(t, "ask [1 2 3]")
		must.Do(t, b.do(t.Context(), 2, 4, 3))
		b.want(t, "h1 [2 3]", "ask [4]", "h2 [4]")
	})
}

func TestEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, over, ended := newBench(t), errors.New("it is over"), make(chan struct{})
		b.during = func() { close(ended) }
		w := b.work(retry.OpenHandles(b.dir, nil))
		w.Ended, w.Cause = ended, func() error { return over }
		start := time.Now()
		if err := w.Do(t.Context(), []int{1}); !errors.Is(err, over) || time.Since(start) > 0 {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}

// Stored rows are requested anew if they come again; the rest keeps its handle.
func TestSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		book := retry.OpenHandles(b.dir, nil)
		if err := b.work(book).Do(t.Context(), []int{1, 2}); err != nil || len(b.settled) != 2 {
			t.Fatalf("%v, %d rows collected", err, len(b.settled))
		}
		must.Do(t, book.Settle(b.settled[:1]))
		b.calls = nil
		must.Do(t, b.do(t.Context(), 1, 2))
		b.want(t, "ask [1]", "h1 [2]", "h2 [1]")
		book = retry.OpenHandles(b.dir, nil)
		must.Do(t, b.work(book).Do(t.Context(), []int{1, 2}))
		if err := book.Settle(b.settled); err != nil || b.files(t) != 0 {
			t.Errorf("%d files are left, %v", b.files(t), err)
		}
	})
}

// What a killed process had collected is settled by a later one, unless it was requested again since.
func TestSettledLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		must.Do(t, b.do(t.Context(), 1, 2))
		first := slices.Clone(b.settled)
		must.Do(t, retry.OpenHandles(b.dir, nil).Settle(first[:1]))
		must.Do(t, b.do(t.Context(), 1, 2))
		b.want(t, "ask [1 2]", "h1 [1 2]", "ask [1]", "h1 [2]", "h2 [1]")
		must.Do(t, retry.OpenHandles(b.dir, nil).Settle(first))
		must.Do(t, b.do(t.Context(), 1, 2))
		b.want(t, "ask [2]", "h2 [1]", "h3 [2]")
		if must.Do(t, retry.OpenHandles(b.dir, nil).Settle(b.settled)); b.files(t) != 0 {
			t.Errorf("%d files are left", b.files(t))
		}
	})
}

// A handle that nobody settles is removed, long after every service has removed the results.
func TestForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		must.Do(t, b.do(t.Context(), 1))
		time.Sleep(60 * 24 * time.Hour)
		must.Do(t, b.do(t.Context(), 1, 2))
		b.want(t, "ask [1]", "h1 [1]", "h1 [1]", "ask [2]", "h2 [2]")
		time.Sleep(60 * 24 * time.Hour)
		must.Do(t, b.do(t.Context(), 2))
		b.want(t, "h2 [2]")
		if n := b.files(t); n != 1 {
			t.Errorf("%d files are left", n)
		}
	})
}

func TestCollectionFails(t *testing.T) {
	lost, busy := sdk.Invalid(errors.New("expired")), sdk.Transient(errors.New("busy"), 0)
	for _, test := range []struct {
		name  string
		fails error
		again []string // calls of the next attempt
	}{
		{"for good", lost, []string{"ask [1 2]", "h2 [1 2]"}},
		{"a row for good", sdk.RowErrors{1: lost}, []string{"h1 [1]", "ask [2]", "h2 [2]"}},
		{"it may pass", busy, []string{"h1 [1 2]"}},
		{"a row may pass", sdk.RowErrors{0: busy}, []string{"h1 [1 2]"}},
		{"a row is refused", sdk.RowErrors{0: sdk.Refused(errors.New("no"))}, []string{"h1 [1 2]"}},
		{"a bug", errors.New("oops"), []string{"h1 [1 2]"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.fails = test.fails
				err := b.do(t.Context(), 1, 2)
				var rows sdk.RowErrors
				if alone := errors.As(err, &rows); err == nil || test.fails == lost && (!alone || len(rows) != 2) {
					t.Errorf("error %v", err)
				}
				b.want(t, "ask [1 2]", "h1 [1 2]")
				must.Do(t, b.do(t.Context(), 1, 2))
				b.want(t, test.again...)
			})
		})
	}
}

// Without Handles nothing is waited for. Handles that cannot be written are an error that no retry
// repeats.
func TestUnkept(t *testing.T) {
	b := newBench(t)
	var later *sdk.Pending
	if err := b.work(nil).Do(t.Context(), []int{1}); sdk.CodeOf(err) != sdk.CodeUnavailable || !errors.As(err, &later) {
		t.Errorf("error %v", err)
	}
	must.Do(t, os.WriteFile(b.dir, nil, 0o600))
	if err := b.do(t.Context(), 1); sdk.CodeOf(err) != sdk.CodeUnavailable {
		t.Errorf("error %v", err)
	}
	must.Do(t, os.Remove(b.dir))
	must.Do(t, os.Mkdir(b.dir, 0o700))
	must.Do(t, os.WriteFile(filepath.Join(b.dir, "x.json"), []byte("{"), 0o600))
	if err := b.do(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "x.json is damaged; remove it") {
		t.Errorf("error %v", err)
	}
}
