package host

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

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

func TestPoisonousBatchFailsAlone(t *testing.T) {
	h, _ := newHost(t)
	dir := t.TempDir()
	p := start(t, h, Spec{Config: echoConfigOf(t, dir)})
	var calls errgroup.Group
	for i := range 12 {
		calls.Go(func() error {
			text := fmt.Sprint("n", i)
			if i == 3 || i == 8 {
				text = "crash"
			}
			got, err := ask(t, p, text)
			if text == "crash" {
				if sdk.CodeOf(err) != sdk.CodeInternal || err == nil || !strings.Contains(err.Error(), "the stage's process ended while it worked on this, 3 times: killed by signal 9 (SIGKILL)") {
					return fmt.Errorf("the poison gave %q, %v", got, err)
				}
				return nil
			}
			if err != nil || got != text {
				return fmt.Errorf("%s: got %q, %v", text, got, err)
			}
			return nil
		})
	}
	if err := calls.Wait(); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "crash")); err != nil || info.Size() > 6 {
		t.Errorf("two batches crashed %d times, %v", info.Size(), err)
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

	// A reading crash in the middle of writing: the read is replayed on the
	// collection as it was committed, opened again; the writes are refused.
	must.Do(t, put("b", "two"))
	r := sdk.Ranking{Search: sdk.Search{Mode: sdk.ModeDense, NumCandidates: 9}, Fusion: sdk.Fusion{Method: "rrf", K: 60}, TopK: 5}
	if _, err := s.Retrieve(ctx, "c", r, []sdk.Query{{Text: "crash", Vector: []float32{1}}}); err == nil {
		t.Error("a poisonous query was answered")
	}
	if lists, err := s.Retrieve(ctx, "c", r, []sdk.Query{{Vector: []float32{1}}}); err != nil || len(lists[0]) != 1 {
		t.Errorf("got %v, %v", lists, err)
	}
	for _, err := range []error{put("d", "three"), s.Delete(ctx, "c", []string{"a"}), s.Commit(ctx, "c", nil)} {
		if !errors.Is(err, ErrRestarted) {
			t.Errorf("got %v", err)
		}
	}
	if c, err := s.Open(ctx, "c", sdk.Schema{Dimension: 1}); err != nil || c.Entries != 1 {
		t.Errorf("got %+v, %v", c, err)
	}
	if err := errors.Join(put("b", "two"), s.Commit(ctx, "c", nil)); err != nil {
		t.Error(err)
	}

	// A crash while writing is not replayed.
	if err := put("e", "crash"); !errors.Is(err, ErrRestarted) {
		t.Errorf("got %v", err)
	}
	if err := s.Commit(ctx, "c", nil); !errors.Is(err, ErrRestarted) {
		t.Errorf("got %v", err)
	}
	if c, err := s.Open(ctx, "c", sdk.Schema{Dimension: 1}); err != nil || c.Entries != 2 {
		t.Errorf("got %+v, %v", c, err)
	}
}

// A collection that was removed before the process that knew it ended is not
// taken for one without entries.
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

// A new process attaches what the one before it had attached, and does not go on with another
// collection of that name.
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
	if err := e.Fit(ctx, learning([]string{"a"}, []string{"crash"})); !errors.Is(err, ErrRestarted) || sdk.CodeOf(err) != sdk.CodeTransient {
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
