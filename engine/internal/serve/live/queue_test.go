package live

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/sdk/support"
)

// gatedPipeline serves a pipeline with a voter that waits, in batches of two.
func gatedPipeline(t *testing.T, queue int) (p *Pipeline, gate string) {
	t.Helper()
	gate = t.TempDir()
	voter := fmt.Sprintf("  sample \"gate\" {\n    use = \"gate\"\n    config { folder = %q }\n  }\n", gate)
	text := strings.Replace(intent, `  sample "vote"`, voter+`  sample "vote"`, 1)
	text = strings.Replace(text, `pipeline "intent" {`, "pipeline \"intent\" {\n  batch = 2", 1)
	dir, o := folder(t, map[string]string{"p.hcl": text, "rows.tsv": fruit})
	o.Queue = queue
	return started(t, o, filepath.Join(dir, "p.hcl")).pipeline("intent"), gate
}

// slow sends an item that waits at the gate.
func slow(ctx context.Context, p *Pipeline, id string) <-chan error {
	done := make(chan error, 1)
	go func() {
		r, err := p.Answer(ctx, workspace.Item{ID: id, Text: "slow red apple"})
		if err == nil && r.Error != nil {
			err = r.Error
		}
		done <- err
	}()
	return done
}

// TestQueue: a first request starts immediately, later requests overtake slow ones, waiting
// requests travel together, a full queue refuses requests, and requests whose callers gave up are
// dropped.
func TestQueue(t *testing.T) {
	p, gate := gatedPipeline(t, 2)
	_, batches := p.current().room()
	var all []<-chan error
	for i := range batches - 1 {
		id := fmt.Sprint("first", i)
		all = append(all, slow(t.Context(), p, id))
		await(t, gate, id)
	}
	if got := ask(t, p, "fast train"); got != "vehicle" {
		t.Fatalf("beside slow ones it is %q", got)
	}
	all = append(all, slow(t.Context(), p, "last"))
	await(t, gate, "last")
	ctx, cancel := context.WithCancel(t.Context())
	leaves := slow(ctx, p, "leaves")
	waits(t, p, 1)
	all = append(all, slow(t.Context(), p, "waits1"))
	waits(t, p, 2)
	if _, err := p.Answer(t.Context(), workspace.Item{Text: "red apple"}); !errors.Is(err, ErrBusy) {
		t.Errorf("a full queue: %v", err)
	}
	cancel()
	if err := <-leaves; !errors.Is(err, context.Canceled) {
		t.Errorf("who does not wait any more: %v", err)
	}
	all = append(all, slow(t.Context(), p, "waits2"))
	waits(t, p, 2)
	if s := p.Status(); s.Working != batches {
		t.Errorf("%+v", s)
	}
	write(t, filepath.Join(gate, "open"), "")
	for _, done := range all {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if n, err := os.ReadFile(filepath.Join(gate, "waits1")); err != nil || string(n) != "2" {
		t.Errorf("what waits travels in batches of %s, %v", n, err)
	}
	if there(gate, "leaves") {
		t.Error("a request that nobody waits for was worked on")
	}
}

// waits waits until n requests wait.
func waits(t *testing.T, p *Pipeline, n int) {
	t.Helper()
	for p.Status().Waiting != n {
		if support.SleepFor(t.Context(), 1e6) != nil {
			t.Fatalf("%+v", p.Status())
		}
	}
}

// TestLeft: a batch that nobody waits for ends.
func TestLeft(t *testing.T) {
	p, gate := gatedPipeline(t, 0)
	ctx, cancel := context.WithCancel(t.Context())
	done := slow(ctx, p, "left")
	await(t, gate, "left")
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	await(t, gate, "ended-left")
	if got := ask(t, p, "red apple"); got != "fruit" {
		t.Errorf("afterwards it is %q", got)
	}
}

// TestClosed: the end of the set ends requests in progress, and those that wait.
func TestClosed(t *testing.T) {
	p, gate := gatedPipeline(t, 0)
	_, batches := p.current().room()
	var all []<-chan error
	for i := range batches {
		id := fmt.Sprint("first", i)
		all = append(all, slow(t.Context(), p, id))
		await(t, gate, id)
	}
	all = append(all, slow(t.Context(), p, "waits"))
	waits(t, p, 1)
	p.set.Close()
	for _, done := range all {
		if err := <-done; err == nil {
			t.Error("a request was answered that cannot have been")
		}
	}
	if _, err := p.Answer(t.Context(), workspace.Item{Text: "red apple"}); !errors.Is(err, errClosed) {
		t.Errorf("%v", err)
	}
	if s := p.Status(); s.Ready {
		t.Errorf("%+v", s)
	}
}
