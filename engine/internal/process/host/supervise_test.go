package host

import (
	"context"
	"encoding/base64"
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

	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/engine/internal/process/retry"
	"github.com/racflow/racflow/engine/internal/progress"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/sdktest/must"
	"github.com/racflow/racflow/sdk/wire"
)

// The error of a row that ended the process says how it ended, whatever is logged.
func TestEndIsExplained(t *testing.T) {
	h, _ := newHost(t)
	h.options.Log = slog.New(slog.DiscardHandler)
	p := start(t, h, Spec{Config: echoConfigOf(t, t.TempDir())})
	const ended = `^sample\.it: plugin test 0\.1\.0: the stage's process ended while it worked on this, 3 times: `
	for text, want := range map[string]string{
		"crash":       `killed by signal 9 \(SIGKILL\), which is also what the system does when memory ends: .* memory = "2GiB"; its last words:\n`,
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

// Whichever request a plugin gets when it ends, the error names the stage, the plugin and its
// version, and how it ended. It quotes nothing of gRPC.
func TestEndsAreExplained(t *testing.T) {
	h, _ := newHost(t)
	store, embedder := Spec{Kind: sdk.KindStore, Use: "test/memory"}, Spec{Kind: sdk.KindEmbed, Use: "test/length"}
	for method, c := range map[string]struct {
		spec Spec
		ask  func(*Process) error // nil: it does not start
	}{
		"Describe":  {spec: Spec{Kind: sdk.KindSample, Use: "test/echo"}},
		"Configure": {spec: Spec{Kind: sdk.KindSample, Use: "test/echo"}},
		"Sample": {Spec{Kind: sdk.KindSample, Use: "test/echo"}, func(p *Process) error {
			_, err := p.Sample(t.Context(), say("a"))
			return err
		}},
		"OpenCollection": {store, func(p *Process) error {
			_, err := p.Open(t.Context(), "c", sdk.Schema{Dimension: 1})
			return err
		}},
		"Put":    {store, func(p *Process) error { return p.Put(t.Context(), "c", []sdk.Entry{{ID: "a", Vector: []float32{1}}}) }},
		"Attach": {store, func(p *Process) error { _, err := p.Attach(t.Context()); return err }},
		"Fit":    {embedder, func(p *Process) error { return p.Fit(t.Context(), learning([]string{"a"})) }},
	} {
		t.Run(method, func(t *testing.T) {
			c.spec.Program, c.spec.Block, c.spec.StateDir = acting(t, "dying "+method), "it", t.TempDir()
			p, err := h.Start(t.Context(), c.spec)
			by := "plugin test 0.1.0: "
			if c.ask == nil && method == "Describe" {
				by = "plugin " + c.spec.Program.Path + ": "
			}
			if c.ask != nil {
				must.Do(t, err)
				err = c.ask(p)
			}
			if err == nil || !strings.HasPrefix(err.Error(), string(c.spec.Kind)+".it: "+by) || !strings.Contains(err.Error(), "process ended") ||
				!strings.Contains(err.Error(), "exit status 5") || strings.Contains(err.Error(), "rpc error") {
				t.Errorf("got %v", err)
			}
		})
	}
	for _, method := range []string{"Describe", "Validate"} {
		program := *acting(t, "dying "+method)
		_, err := h.Describe(t.Context(), program)
		if method == "Validate" {
			err = h.Validate(t.Context(), program, sdk.KindSample, "echo", []byte("{}"))
		}
		if err == nil || !strings.Contains(err.Error(), "the plugin "+program.Path) || !strings.Contains(err.Error(), "process ended: exit status 5") {
			t.Errorf("%s: got %v", method, err)
		}
	}
}

// A row is not blamed for the end of a process that had answered other rows.
func TestAWornProcessIsNoRowsFault(t *testing.T) {
	h, _ := newHost(t)
	p := start(t, h, Spec{Config: echoConfigOf(t, t.TempDir())})
	row := func(text string) error {
		w := retry.Work{Call: func(ctx context.Context, _ []int) error {
			_, err := p.Sample(ctx, say(text))
			return err
		}}
		return w.Do(wire.Alone(t.Context()), 1)[0]
	}
	for range 2 { // the previous process has answered the last request
		if got, err := ask(t, p, "a"); got != "a" || err != nil {
			t.Fatalf("got %q, %v", got, err)
		}
		alone := wire.Alone(t.Context())
		if _, err := p.Sample(alone, say("worn")); !errors.Is(err, sdk.ErrCrashed) { // the cause may be many rows
			t.Errorf("got %v", err)
		}
		if got, err := ask(t, p, "a"); got != "a" || err != nil {
			t.Fatalf("got %q, %v", got, err)
		}
		if err := row("worn"); err != nil {
			t.Error(err)
		}
	}
	if err := row("crash"); !errors.Is(err, sdk.ErrCrashed) || !strings.Contains(err.Error(), "on this, again: ") {
		t.Errorf("got %v", err)
	}
}

// Internal errors of a stage name the stage.
func TestFailuresAreSigned(t *testing.T) {
	h, _ := newHost(t)
	third := start(t, h, Spec{Program: acting(t, "plugin"), Use: "test/echo", Kind: sdk.KindSample})
	for stage, sign := range map[*Process]string{third: "sample.it: plugin test 0.1.0: ", start(t, h, Spec{}): "sample.it: "} {
		_, err := ask(t, stage, "panic")
		want := regexp.MustCompile("^" + sign + `panic in the plugin: out of cheese; its log has the whole stack:\n  .*Sample.*\n  \t\S*/main_test\.go:\d+`)
		if err == nil || !want.MatchString(err.Error()) {
			t.Errorf("got %v", err)
		}
		_, err = stage.Sample(t.Context(), say("a", "broken"))
		if rows := (sdk.RowErrors{}); !errors.As(err, &rows) || rows[1].Error() != sign+"no idea" {
			t.Errorf("got %v", err)
		}
	}
}

// A process that works past a request's deadline, or has stopped, is replaced before the caller
// continues; a process that notices the deadline stays.
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

// deadline is a context whose time ends when a test says so.
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

// If a stage's process ends with every request, the stage is given up once, for all rows.
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

// A host reports stages without an answer, and since when.
func TestHostWaits(t *testing.T) {
	h, _ := newHost(t)
	ctx, cancel := context.WithCancel(t.Context())
	begun := time.Now()
	p := start(t, h, Spec{Config: echoConfigOf(t, t.TempDir())})
	waits := func() (all []progress.Wait) {
		h.Waits(time.Now().Add(time.Minute), func(w progress.Wait) { all = append(all, w) })
		return all
	}
	if all := waits(); len(all) > 0 {
		t.Errorf("got %+v of a stage that is asked nothing", all)
	}
	done := make(chan error, 1)
	go func() { _, err := p.Sample(ctx, say("wait")); done <- err }()
	var all []progress.Wait
	for ; len(all) == 0; all = waits() {
		runtime.Gosched()
	}
	w := all[0]
	must.Equal(t, "wait", progress.Wait{Stage: "sample.it", Calls: 1, After: progress.WaitLate}, w, cmpopts.IgnoreFields(w, "Why", "Since"))
	if !strings.HasPrefix(w.Why, "no answer for 1m") || w.Since.Before(begun) {
		t.Errorf("since %v: %s", w.Since, w.Why)
	}
	cancel()
	if err := <-done; sdk.CodeOf(err) != sdk.CodeCancelled {
		t.Errorf("got %v", err)
	}
	if all := waits(); len(all) > 0 {
		t.Errorf("got %+v of a stage that is asked nothing any more", all)
	}
}

// Answers postpone the report, and so does an idle stage.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reports := make(chan []time.Duration, 9)
		start := time.Now()
		w := &waits{}
		reporter := progress.NewWaitReporter(func(r progress.LongWait) { reports <- []time.Duration{time.Since(start), r.For} })
		defer reporter.Close()
		reporter.Watch(func(now time.Time, say func(progress.Wait)) { w.say("sample.it", now, say) })
		w.begin()
		w.begin()
		time.Sleep(20 * time.Second)
		w.end(true) // one of two has ended: the other waits from now on
		time.Sleep(29 * time.Second)
		w.begin()
		w.end(false) // ended without an answer
		time.Sleep(35 * time.Second)
		w.end(true)
		time.Sleep(time.Hour)
		w.begin()
		time.Sleep(29 * time.Second)
		w.end(true)
		opened, starting := w.open(), time.Since(start)
		time.Sleep(9 * time.Second)
		opened()
		w.begin() // it reads rows that take an hour to make
		for range w.fed(func(yield func(*stagepb.FitRequest, error) bool) { time.Sleep(time.Hour); yield(nil, nil) }) {
			time.Sleep(40 * time.Second)
		}
		w.end(true)
		time.Sleep(time.Hour)
		fed := starting + 9*time.Second + time.Hour
		want := [][]time.Duration{{50 * time.Second, 30 * time.Second}, {80 * time.Second, 60 * time.Second}, {starting + 5*time.Second, 5 * time.Second}, {fed + 30*time.Second, 30 * time.Second}}
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

func TestCrashIsReplayed(t *testing.T) {
	h, log := newHost(t)
	restarted := make(chan string, 12)
	h.options.Restarted = func(stage, why string) { restarted <- stage + ": " + why }
	p := start(t, h, Spec{Config: echoConfigOf(t, t.TempDir())})
	var calls errgroup.Group
	for i := range 12 {
		calls.Go(func() error {
			text := fmt.Sprint("n", i)
			if i == 5 {
				text = "crash-once"
			}
			if got, err := ask(t, p, text); err != nil || got != text {
				return fmt.Errorf("%s: got %q, %w", text, got, err)
			}
			return nil
		})
	}
	if err := calls.Wait(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "started again") {
		t.Error("the log does not tell of the restart")
	}
	if got := <-restarted; !strings.Contains(got, p.name()+": ") || !strings.Contains(got, "SIGKILL") {
		t.Errorf("the restart is reported as %q", got)
	}
}

func TestStoppedProcessIsReplaced(t *testing.T) {
	h, _ := newHost(t)
	h.limits.healthEvery, h.limits.healthWithin = 50*time.Millisecond, time.Second
	p := start(t, h, Spec{Config: echoConfigOf(t, t.TempDir())})
	begin := time.Now()
	wantEcho(t, p, "stop-once")
	if took := time.Since(begin); took > patience {
		t.Errorf("it took %v", took)
	}
}

func TestDeafProcessIsReplaced(t *testing.T) {
	h, _ := newHost(t)
	h.limits.healthEvery = 50 * time.Millisecond
	p := start(t, h, Spec{})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	var calls errgroup.Group
	for range 16 {
		calls.Go(func() error { _, err := p.Sample(ctx, say("deaf")); return err })
	}
	if err := calls.Wait(); sdk.CodeOf(err) != sdk.CodeDeadline {
		t.Errorf("got %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), patience)
	defer cancel()
	if out, err := p.Sample(ctx, say("a")); err != nil || len(out) != 1 {
		t.Errorf("got %v, %v", out, err)
	}
}

func TestGivesUpOnAPluginThatWillNotStart(t *testing.T) {
	h, _ := newHost(t)
	plugin, dir := acting(t, "plugin"), t.TempDir()
	plugin.Allow.Write = []string{dir}
	p := start(t, h, Spec{Config: echoConfigOf(t, dir), Program: plugin})
	must.Do(t, os.Remove(plugin.Path))
	if _, err := ask(t, p, "crash-once"); err == nil || !strings.Contains(err.Error(), "there is no program "+plugin.Path) {
		t.Errorf("got %v", err)
	}
	if _, err := ask(t, p, "a"); err == nil || errors.Is(err, ErrClosed) {
		t.Errorf("then %v", err)
	}
}

func TestCrashOfAStoreLosesNothingSilently(t *testing.T) {
	h, _ := newHost(t)
	ctx := t.Context()
	s := start(t, h, Spec{Kind: sdk.KindStore, Use: "memory", StateDir: t.TempDir()})
	put := func(id, text string) error {
		return s.Put(ctx, "c", []sdk.Entry{{ID: id, Text: text, Vector: []float32{1}}})
	}
	if _, err := s.Open(ctx, "c", sdk.Schema{Dimension: 1}); err != nil {
		t.Fatal(err)
	}
	must.Do(t, errors.Join(put("a", "one"), s.Commit(ctx, "c", nil)))

	// A reading crash in the middle of writing: the read is repeated on the committed collection,
	// which is opened again; the writes are refused.
	must.Do(t, put("b", "two"))
	r := sdk.Ranking{Search: sdk.Search{Mode: sdk.ModeDense, NumCandidates: 9}, Fusion: sdk.Fusion{Method: "rrf", K: 60}, TopK: 5}
	if _, err := s.Retrieve(ctx, "c", r, []sdk.Query{{Text: "crash", Vector: []float32{1}}}); err == nil {
		t.Error("a poisonous query was answered")
	}
	if lists, err := s.Retrieve(ctx, "c", r, []sdk.Query{{Vector: []float32{1}}}); err != nil || len(lists[0]) != 1 {
		t.Errorf("got %v, %v", lists, err)
	}
	for _, err := range []error{put("d", "three"), s.Delete(ctx, "c", []string{"a"}), s.Commit(ctx, "c", nil)} {
		if !errors.Is(err, errRestarted) {
			t.Errorf("got %v", err)
		}
	}
	if c, err := s.Open(ctx, "c", sdk.Schema{Dimension: 1}); err != nil || c.Entries != 1 {
		t.Errorf("got %+v, %v", c, err)
	}
	if err := errors.Join(put("b", "two"), s.Commit(ctx, "c", nil)); err != nil {
		t.Error(err)
	}

	// A crash while writing is not repeated.
	if err := put("e", "crash"); !errors.Is(err, errRestarted) {
		t.Errorf("got %v", err)
	}
	if err := s.Commit(ctx, "c", nil); !errors.Is(err, errRestarted) {
		t.Errorf("got %v", err)
	}
	if c, err := s.Open(ctx, "c", sdk.Schema{Dimension: 1}); err != nil || c.Entries != 2 {
		t.Errorf("got %+v, %v", c, err)
	}
}

// A collection that was removed before its process ended is not mistaken for an empty one.
func TestCrashAfterACollectionWasRemoved(t *testing.T) {
	h, _ := newHost(t)
	ctx, dir := t.Context(), t.TempDir()
	s := start(t, h, Spec{Kind: sdk.KindStore, Use: "memory", StateDir: dir})
	if _, err := s.Open(ctx, "c", sdk.Schema{Dimension: 1}); err != nil {
		t.Fatal(err)
	}
	must.Do(t, errors.Join(s.Put(ctx, "c", []sdk.Entry{{ID: "a", Vector: []float32{1}}}), s.Commit(ctx, "c", []byte("note"))))
	must.Do(t, os.Remove(filepath.Join(dir, "c.json")))
	r := sdk.Ranking{Search: sdk.Search{Mode: sdk.ModeDense, NumCandidates: 9}, Fusion: sdk.Fusion{Method: "rrf", K: 60}, TopK: 5}
	if _, err := s.Retrieve(ctx, "c", r, []sdk.Query{{Text: "crash", Vector: []float32{1}}}); err == nil {
		t.Fatal("a poisonous query was answered")
	}
	if _, err := s.Retrieve(ctx, "c", r, []sdk.Query{{Vector: []float32{1}}}); !errors.Is(err, errGone) {
		t.Errorf("got %v", err)
	}
}

// A new process attaches the collection of its predecessor, and refuses another collection of that
// name.
func TestCrashOfAnAttachedStore(t *testing.T) {
	h, _ := newHost(t)
	ctx, dir := t.Context(), t.TempDir()
	theirs := func(id string) {
		t.Helper()
		file := filepath.Join(dir, "docs.json")
		must.Do(t, os.WriteFile(file, []byte(`{"Committed": {"a": {"ID": "a", "Vector": [1]}}, "Note": "`+base64.StdEncoding.EncodeToString([]byte(id))+`"}`), 0o600))
	}
	s := start(t, h, Spec{Kind: sdk.KindStore, Use: "memory", Config: []byte(`{"collection": "docs"}`), StateDir: dir})
	refused := new(ConfigError)
	if _, err := s.Attach(ctx); !errors.As(err, &refused) || refused.Error() != "store.it: collection: there is no file of docs" {
		t.Errorf("a collection that is not there gives %v", err)
	}
	theirs("1")
	if a, err := s.Attach(ctx); err != nil || a.ID != "1" || a.Entries != 1 {
		t.Fatalf("got %+v, %v", a, err)
	}
	r := sdk.Ranking{Search: sdk.Search{Mode: sdk.ModeDense, NumCandidates: 9}, Fusion: sdk.Fusion{Method: "rrf", K: 60}, TopK: 5}
	crash := func() {
		t.Helper()
		if _, err := s.Retrieve(ctx, "docs", r, []sdk.Query{{Text: "crash", Vector: []float32{1}}}); err == nil {
			t.Fatal("a poisonous query was answered")
		}
	}
	crash()
	if found, err := s.Retrieve(ctx, "docs", r, []sdk.Query{{Vector: []float32{1}}}); err != nil || len(found[0]) != 1 {
		t.Errorf("after a crash: %v, %v", found, err)
	}
	theirs("2")
	if a, err := s.Attach(ctx); err != nil || a.ID != "2" {
		t.Fatalf("got %+v, %v", a, err)
	}
	crash()
	if _, err := s.Retrieve(ctx, "docs", r, []sdk.Query{{Vector: []float32{1}}}); !errors.Is(err, errReplaced) {
		t.Errorf("another collection gave %v", err)
	}
}

func TestFittedStateSurvivesACrash(t *testing.T) {
	h, _ := newHost(t)
	ctx := t.Context()
	e := start(t, h, Spec{Kind: sdk.KindEmbed, Use: "length", StateDir: t.TempDir()})
	must.Do(t, e.Fit(ctx, learning([]string{"a"})))
	fitted := func() {
		t.Helper()
		if v, err := e.Embed(ctx, sdk.RoleQuery, []string{""}); err != nil || v[0][1] != 1 {
			t.Errorf("got %v, %v: the state is lost", v, err)
		}
	}
	if _, err := e.Embed(ctx, sdk.RoleQuery, []string{"crash"}); err == nil {
		t.Error("a poisonous text was embedded")
	}
	fitted()
	if err := e.Fit(ctx, learning([]string{"a"}, []string{"crash"})); !errors.Is(err, errRestarted) || sdk.CodeOf(err) != sdk.CodeTransient {
		t.Errorf("half a fit gave %v", err)
	}
	fitted() // as before
	broken := errors.New("the rows end here")
	err := e.Fit(ctx, func(yield func([]sdk.TrainingRow, error) bool) { _ = yield(nil, nil) && yield(nil, broken) })
	if !errors.Is(err, broken) {
		t.Errorf("an error among the rows gave %v", err)
	}
	fitted()
}
