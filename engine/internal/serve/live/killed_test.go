package live

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/racflow/racflow/engine/internal/knowledge/generation"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// stages counts the processes of stages, by their command lines.
func stages(t testing.TB) map[string]int {
	t.Helper()
	found := map[string]int{}
	for _, pid := range children(t) {
		line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if err == nil && len(line) > 0 { // otherwise the process has ended
			found[strings.Join(strings.Split(strings.Trim(string(line), "\x00"), "\x00")[1:], " ")] = pid
		}
	}
	return found
}

// TestKilled: each stage is killed with signal 9 under load, again and again. Every request gets the
// right answer or an error. Afterwards the pipeline answers with as many processes as before.
func TestKilled(t *testing.T) { testKilled(t, intent) }

func testKilled(t *testing.T, intent string) {
	t.Helper()
	learning := strings.Replace(intent, `  sample "vote"`, "  sample \"linear\" { use = \"linear\" }\n  sample \"prototype\" { use = \"prototype\" }\n  sample \"vote\"", 1)
	dir, o := folder(t, map[string]string{"p.hcl": learning, "rows.tsv": fruit})
	p := started(t, o, filepath.Join(dir, "p.hcl")).pipeline("intent")
	before := stages(t)
	if len(before) != 6 { // embed, store, three voters, the election
		t.Fatalf("%v", before)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var load sync.WaitGroup
	var answered atomic.Int64
	for i := range 8 {
		text, label := "red apple", "fruit"
		if i%2 == 0 {
			text, label = "fast train", "vehicle"
		}
		load.Go(func() {
			for ctx.Err() == nil {
				r, err := p.Answer(context.Background(), workspace.Item{Text: text})
				switch {
				case err != nil:
					t.Errorf("%v", err) // an item's error belongs in the result
					return
				case r.Error != nil:
				case string(r.Answer) != label:
					t.Errorf("%s: %+v", text, r)
					return
				default:
					answered.Add(1)
				}
			}
		})
	}
	for range 3 {
		for name := range before {
			at := answered.Load()
			if pid, ok := stages(t)[name]; ok {
				must.Do(t, syscall.Kill(pid, syscall.SIGKILL))
			}
			for answered.Load() < at+20 && !t.Failed() && t.Context().Err() == nil {
				ask(t, p, "red apple")
			}
		}
	}
	cancel()
	load.Wait()
	after := stages(t)
	if len(after) != len(before) {
		t.Errorf("%v, and before %v", after, before)
	}
}

// TestMended: a version whose stage cannot be restarted is replaced.
func TestMended(t *testing.T) {
	dir, o := folder(t, map[string]string{"p.hcl": intent, "rows.tsv": fruit})
	p := started(t, o, filepath.Join(dir, "p.hcl")).pipeline("intent")
	first := p.current()
	// After its restart, the store's process finds that its collection is gone.
	collection := p.Status().Knowledge[0].Collection
	must.Do(t, os.RemoveAll(filepath.Join(dir, "state/knowledge/k", collection)))
	for name, pid := range stages(t) {
		if strings.Contains(name, "store") {
			must.Do(t, syscall.Kill(pid, syscall.SIGKILL))
		}
	}
	for p.current() == first && t.Context().Err() == nil {
		r, err := p.Answer(t.Context(), workspace.Item{Text: "red apple"})
		if err == nil && r.Error == nil && r.Answer != "fruit" {
			t.Fatalf("%+v", r)
		}
	}
	if got := ask(t, p, "red apple"); got != "fruit" {
		t.Errorf("it is %q", got)
	}
}

// TestHeld: served knowledge is marked as held, is not removed by others, and is built again if somebody
// removes it nonetheless.
func TestHeld(t *testing.T) {
	dir, o := folder(t, map[string]string{"p.hcl": intent, "rows.tsv": fruit})
	file := filepath.Join(dir, "p.hcl")
	p := started(t, o, file).pipeline("intent")
	other := started(t, o, file).pipeline("intent") // as another process would
	collection := p.Status().Knowledge[0].Collection
	if got := other.Status().Knowledge[0].Collection; got != collection {
		t.Fatalf("two that serve the same have %s and %s", collection, got)
	}
	write(t, filepath.Join(dir, "rows.tsv"), turned)
	must.Do(t, other.Rebuild(t.Context()))
	other.settled(t)
	there := func() bool {
		_, err := os.Stat(filepath.Join(dir, "state/knowledge/k", collection))
		return err == nil
	}
	if !there() {
		t.Fatal("what the other one serves was removed")
	}
	all, superseded := generations(t, o, file)
	for _, g := range all {
		if g.State != generation.Served {
			t.Errorf("%s is %s", g.Collection, g.State)
		}
	}
	if len(all) != 2 || len(superseded) > 0 {
		t.Errorf("of %d these would be removed: %+v", len(all), superseded)
	}
	p.holdOnce()
	if p.current().sick.Load() {
		t.Error("what is served does not hold what it searches")
	}
	if got := ask(t, p, "red apple"); got != "fruit" {
		t.Errorf("it is %q", got)
	}
	must.Do(t, p.Rebuild(t.Context()))
	if p.settled(t); there() {
		t.Error("what nobody serves any more stays")
	}
	first := p.current()
	must.Do(t, os.RemoveAll(filepath.Join(dir, "state/knowledge/k", p.Status().Knowledge[0].Collection)))
	for p.holdOnce(); p.current() == first && t.Context().Err() == nil; {
		if got := ask(t, p, "red apple"); got != "vehicle" {
			t.Fatalf("it is %q", got)
		}
	}
}
