package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/racflow/racflow/engine/retry"
	"github.com/racflow/racflow/engine/waiting"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
	"github.com/racflow/racflow/sdk/wire"
)

// Who reads the error of a row that ended the process learns how, whatever is logged.
func TestEndIsExplained(t *testing.T) {
	h, _ := newHost(t)
	h.options.Log = slog.New(slog.DiscardHandler)
	p := start(t, h, Spec{Config: echoConfigOf(t, t.TempDir())})
	const ended = `^sample\.it: plugin test 0\.1\.0: the stage's process ended while it worked on this, 3 times: `
	for text, want := range map[string]string{
		"crash":       `killed by signal 9 \(SIGKILL\), and not by the kernel for lack of memory; its last words:\n`,
		"panic-aside": `exit status 2, panic: out of cheese, aside at \S*/main_test\.go:\d+; its last words:\n(?s:.*)created by`,
		"exit":        `exit status 3; its last words:\n(?s:.*)no more cheese$`,
	} {
		_, err := ask(t, p, text)
		if err == nil || !regexp.MustCompile(ended+want).MatchString(err.Error()) || !errors.Is(err, sdk.ErrCrashed) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	wantEcho(t, p, "a")
}

// A row is not blamed for the end of a process that had answered others.
func TestAWornProcessIsNoRowsFault(t *testing.T) {
	h, _ := newHost(t)
	p := start(t, h, Spec{Config: echoConfigOf(t, t.TempDir())})
	for range 2 { // the process before it has answered the last one
		if got, err := ask(t, p, "a"); got != "a" || err != nil {
			t.Fatalf("got %q, %v", got, err)
		}
		alone := wire.Alone(t.Context())
		if _, err := p.Sample(alone, say("worn")); !errors.Is(err, sdk.ErrCrashed) { // it may be many rows
			t.Errorf("got %v", err)
		}
		if got, err := ask(t, p, "a"); got != "a" || err != nil {
			t.Fatalf("got %q, %v", got, err)
		}
		if out, err := p.Sample(wire.Blamed(alone), say("worn")); err != nil || out[0][0].Answers[0].Label != "worn" {
			t.Errorf("got %v, %v", out, err)
		}
	}
	if _, err := p.Sample(wire.Blamed(wire.Alone(t.Context())), say("crash")); !errors.Is(err, sdk.ErrCrashed) || !strings.Contains(err.Error(), "on this, 2 times: ") {
		t.Errorf("got %v", err)
	}
}

// What a stage does not account for says whose it is.
func TestFailuresAreSigned(t *testing.T) {
	h, _ := newHost(t)
	third := start(t, h, Spec{Program: acting(t, "plugin"), Use: "test/echo", Kind: sdk.KindSample})
	for stage, sign := range map[*Process]string{third: "sample.it: plugin test 0.1.0: ", start(t, h, Spec{}): "sample.it: "} {
		_, err := ask(t, stage, "panic")
		want := regexp.MustCompile("^" + sign + `panic in the plugin: out of cheese; its log has the whole stack:\n  .*Sample.*\n  \t\S*/main_test\.go:\d+$`)
		if err == nil || !want.MatchString(err.Error()) {
			t.Errorf("got %v", err)
		}
		_, err = stage.Sample(t.Context(), say("a", "broken"))
		if rows := (sdk.RowErrors{}); !errors.As(err, &rows) || rows[1].Error() != sign+"no idea" {
			t.Errorf("got %v", err)
		}
	}
}

// A process that works on after a request's time is over, or has stopped, is
// replaced before the caller goes on; one that notices stays.
func TestNextRequestFindsAProcess(t *testing.T) {
	for text, begun := range map[string]string{"deaf": "deaf", "stop": "stopping", "wait": "waiting"} {
		replaced := text != "wait"
		t.Run(text, func(t *testing.T) {
			h, _ := newHost(t)
			dir := t.TempDir()
			if replaced {
				h.limits.deaf = 50 * time.Millisecond
			} else {
				h.limits.deaf = patience
			}
			p := start(t, h, Spec{Config: echoConfigOf(t, dir)})
			before, err := ask(t, p, "pid")
			must.Do(t, err)
			ctx := deadline{t.Context(), make(chan struct{})}
			done := make(chan error, 1)
			go func() { _, err := p.Sample(ctx, say(text)); done <- err }()
			waitFor(t, "the request is worked on", func() bool { _, err := os.Stat(filepath.Join(dir, begun)); return err == nil })
			close(ctx.over)
			if err := <-done; sdk.CodeOf(err) != sdk.CodeDeadline {
				t.Errorf("got %v", err)
			}
			p.mu.Lock()
			now := p.current.process.running.ID()
			p.mu.Unlock()
			if (now != before) != replaced {
				t.Errorf("process %s follows %s", now, before)
			}
			if after, err := ask(t, p, "pid"); err != nil || after != now {
				t.Errorf("got process %s, want %s: %v", after, now, err)
			}
		})
	}
}

// deadline is a context whose time is over when a test says so.
type deadline struct {
	context.Context
	over chan struct{}
}

func (d deadline) Done() <-chan struct{} { return d.over }

func (d deadline) Err() error {
	select {
	case <-d.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// A stage whose process ends whatever it is given is given up once, for all rows.
func TestGivesUpOnAProcessThatAlwaysEnds(t *testing.T) {
	h, _ := newHost(t)
	h.limits.ends = 12
	dir := t.TempDir()
	p := start(t, h, Spec{Config: echoConfigOf(t, dir)})
	texts := make([]string, 64)
	for i := range texts {
		texts[i] = fmt.Sprint("crash ", i)
	}
	work := retry.Work{Retries: 3, Call: func(ctx context.Context, at []int) error {
		some := make([]string, len(at))
		for i, n := range at {
			some[i] = texts[n]
		}
		_, err := p.Sample(ctx, say(some...))
		return err
	}}
	for range 2 {
		errs := work.Do(t.Context(), len(texts))
		last := errs[len(errs)-1]
		if want := "sample.it: plugin test 0.1.0 ended 13 times in a row, whatever it was asked, and is not started again: killed by signal 9 (SIGKILL)"; last == nil || !strings.HasPrefix(last.Error(), want) {
			t.Errorf("got %v, want %s", last, want)
		}
		for i, err := range errs {
			if err == nil || !errors.Is(err, sdk.ErrCrashed) && err.Error() != last.Error() {
				t.Errorf("row %d: %v", i, err)
			}
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "crash")); err != nil || info.Size() != 13 {
		t.Errorf("the process was ended %d times, %v", info.Size(), err)
	}
}

// A host says of which stages no answer has come, and since when.
func TestHostWaits(t *testing.T) {
	h, _ := newHost(t)
	ctx, cancel := context.WithCancel(t.Context())
	begun := time.Now()
	p := start(t, h, Spec{Config: echoConfigOf(t, t.TempDir())})
	waits := func() (all []waiting.Wait) {
		h.Waits(time.Now().Add(time.Minute), func(w waiting.Wait) { all = append(all, w) })
		return all
	}
	if all := waits(); len(all) > 0 {
		t.Errorf("got %+v of a stage that is asked nothing", all)
	}
	done := make(chan error, 1)
	go func() { _, err := p.Sample(ctx, say("wait")); done <- err }()
	var all []waiting.Wait
	for ; len(all) == 0; all = waits() {
		runtime.Gosched()
	}
	if w := all[0]; w.Stage != "sample.it" || w.Calls != 1 || !strings.HasPrefix(w.Why, "no answer for 1m") || w.Since.Before(begun) || w.After != waiting.Late {
		t.Errorf("got %+v", w)
	}
	cancel()
	if err := <-done; sdk.CodeOf(err) != sdk.CodeCancelled {
		t.Errorf("got %v", err)
	}
	if all := waits(); len(all) > 0 {
		t.Errorf("got %+v of a stage that is asked nothing any more", all)
	}
}

// Answers put the report off, and so does having nothing to do.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reports := make(chan []time.Duration, 9)
		start := time.Now()
		w := &waits{}
		reporter := waiting.New(func(r waiting.Report) { reports <- []time.Duration{time.Since(start), r.For} })
		defer reporter.Close()
		reporter.Watch(func(now time.Time, say func(waiting.Wait)) { w.say("sample.it", now, say) })
		w.begin()
		w.begin()
		time.Sleep(20 * time.Second)
		w.end(true) // of two: the other waits from now on
		time.Sleep(29 * time.Second)
		w.begin()
		w.end(false) // that was no answer
		time.Sleep(35 * time.Second)
		w.end(true)
		time.Sleep(time.Hour)
		w.begin()
		time.Sleep(29 * time.Second)
		w.end(true)
		opened, starting := w.open(), time.Since(start)
		time.Sleep(9 * time.Second)
		opened()
		time.Sleep(time.Hour)
		want := [][]time.Duration{{50 * time.Second, 30 * time.Second}, {80 * time.Second, 60 * time.Second}, {starting + 5*time.Second, 5 * time.Second}}
		for len(reports) > 0 {
			report := <-reports
			if len(want) == 0 || !slices.Equal(report, want[0]) {
				t.Fatalf("got a report of %v, want %v", report, want)
			}
			want = want[1:]
		}
		if len(want) > 0 {
			t.Errorf("there is no report of %v", want)
		}
	})
}
