package knowledge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/engine/internal/knowledge/generation"

	"github.com/racflow/racflow/sdk"
)

// machine resolves the precision of an embedder when the embedder opens.
type machine struct {
	can       []string // precisions, best first
	tells     bool     // the fingerprint depends on the precision
	precision string   // current precision
}

func (m *machine) start(resolved json.RawMessage) error {
	var values struct{ Precision string }
	if resolved == nil {
		values.Precision = m.can[0]
	} else if err := json.Unmarshal(resolved, &values); err != nil {
		return err
	}
	if m.precision = values.Precision; !slices.Contains(m.can, m.precision) {
		return fmt.Errorf("this processor cannot do %s", m.precision)
	}
	return nil
}

// resolver is letters on a machine.
type resolver struct{ *letters }

func (r resolver) Resolved() map[string]any { return map[string]any{"precision": r.machine.precision} }

// settler is letters that resolve a precision from what they have learned.
type settler struct{ *letters }

func (s settler) Resolved() map[string]any {
	if s.state == nil {
		return nil
	}
	return map[string]any{"precision": string(s.state)}
}

// Arguments that an embedder has settled by the knowledge's texts hold for the index version and
// its editions, however they grow. Nothing is embedded again.
func TestASettledEmbedderLearnsOnce(t *testing.T) {
	b := newBench(t)
	b.embedder.fits, b.embedder.settles, b.stages.losses = true, true, new(atomic.Int64)
	rows := []string{"1\ta\tx", "2\tb\ty", "3\tc\ty"}
	const want = `{"precision":"fitted to 3"}`
	check := func(doing string, generations int) {
		t.Helper()
		all := b.history().Generations
		if len(all) != generations {
			t.Errorf("%s: %d generations", doing, len(all))
		}
		for _, g := range all {
			if string(g.Resolved) != want {
				t.Errorf("%s: resolved %s", doing, g.Resolved)
			}
		}
		if b.embedder.fitted != 3 {
			t.Errorf("%s: it has learnt from %d rows", doing, b.embedder.fitted)
		}
	}
	b.stages.losses.Store(1) // the store ends once, before any note is written
	_, embedded := b.open(rows...)
	if same(t, "embedded", slices.Compact(embedded), "a", "b", "c"); string(b.embedder.state) != "fitted to 3" {
		t.Errorf("state %q", b.embedder.state)
	}
	check("the first time", 1)
	rows = append(rows, "4\taa\tx", "5\tbb\ty", "6\tcc\ty", "7\tdd\ty")
	_, embedded = b.open(rows...)
	same(t, "embedded", embedded, "aa", "bb", "cc", "dd")
	check("more than twice as many rows", 1)
	if k, embedded := b.open(rows...); !k.Report.Unchanged || len(embedded) > 0 {
		t.Errorf("embedded %q again, report %+v", embedded, k.Report)
	}
	_, err := knowledge.Open(t.Context(), b.block, b.stages, knowledge.Options{Edition: true})
	if err != nil || string(b.embedder.state) != "fitted to 3" {
		t.Errorf("an edition works by %q: %v", b.embedder.state, err)
	}
	check("an edition", 2)
}

// takenOver is a store whose process ends at the first Put. Before the next Put, it commits what
// another process has settled.
type takenOver struct {
	generation.Store
	ended *bool
}

func (s takenOver) Put(ctx context.Context, collection string, entries []sdk.Entry) error {
	if *s.ended {
		return s.Store.Put(ctx, collection, entries)
	}
	*s.ended = true
	note, err := json.Marshal(generation.Note{State: []byte("fitted to 9"), Fitted: 3, Origin: generation.Origin{Resolved: json.RawMessage(`{"precision":"fitted to 9"}`)}})
	if err := errors.Join(err, s.Store.Commit(ctx, collection, note)); err != nil {
		return err
	}
	return sdk.Transient(errors.New("gone"), 0)
}

// What another process has settled applies to an interrupted build that had settled otherwise.
func TestAnotherProcessSettles(t *testing.T) {
	b := newBench(t)
	b.embedder.fits, b.embedder.settles = true, true
	ended := false
	b.stages.wrap = func(s generation.Store) generation.Store { return takenOver{s, &ended} }
	b.open("1\ta\tx", "2\tb\ty", "3\tc\ty")
	const want = `{"precision":"fitted to 9"}`
	if string(b.embedder.opened) != want || string(b.embedder.state) != "fitted to 9" {
		t.Errorf("the embedder works by %s, and has learnt %q", b.embedder.opened, b.embedder.state)
	}
	if all := b.history().Generations; len(all) != 1 || string(all[0].Resolved) != want {
		t.Errorf("generations %+v", all)
	}
}

// Two machines share a store. The values that the first machine has resolved apply to the second
// machine's work.
func TestMachinesShareAGeneration(t *testing.T) {
	for _, tells := range []bool{true, false} {
		for _, fits := range []bool{false, true} {
			t.Run(fmt.Sprint("tells ", tells, " fits ", fits), func(t *testing.T) {
				b := newBench(t)
				b.embedder.fits = fits
				rows := []string{"1\ta\tx", "2\tb\ty", "3\tc\ty", "4\tab\ty", "5\tac\ty", "6\tad\ty"}
				b.embedder.machine = &machine{can: []string{"half", "single"}, tells: tells}
				b.open(rows...)
				b.embedder.machine = &machine{can: []string{"single", "half"}, tells: tells}
				if k, embedded := b.open(rows...); !k.Report.Unchanged || len(embedded) > 0 || b.embedder.machine.precision != "half" {
					t.Errorf("embedded %q in %s, report %+v", embedded, b.embedder.machine.precision, k.Report)
				}
				k, embedded := b.open(append(rows, "7\tbb\tx")...)
				same(t, "embedded", embedded, "bb")
				if found := b.nearest(k, "bb"); b.embedder.machine.precision != "half" || found[0] != "2" && found[0] != "7" {
					t.Errorf("found %q in %s", found, b.embedder.machine.precision)
				}
				all := b.history().Generations
				if len(all) != 1 || all[0].State != generation.Current || string(all[0].Resolved) != `{"precision":"half"}` {
					t.Errorf("generations %+v", all)
				}
			})
		}
	}
}

// A machine that cannot work with the resolved values builds its own index version, and leaves the
// other version unchanged.
func TestAMachineThatCannotShare(t *testing.T) {
	b := newBench(t)
	rows := []string{"1\ta\tx", "2\tb\ty"}
	first := &machine{can: []string{"half"}, tells: true}
	b.embedder.machine = first
	b.open(rows...)
	b.age()
	b.embedder.machine = &machine{can: []string{"single"}, tells: true}
	k, embedded := b.open(rows...)
	same(t, "embedded", embedded, "a", "b")
	same(t, "why", k.Report.Anew, `letters works with {"precision":"single"} on this machine and cannot with {"precision":"half"}, as before: embedding again`)
	if n := len(b.history().Generations); n != 2 || len(k.Report.Retired) > 0 {
		t.Errorf("%d generations, removed %+v", n, k.Report.Retired)
	}
	if k, embedded = b.open(rows...); !k.Report.Unchanged || len(embedded) > 0 {
		t.Errorf("embedded %q again, report %+v", embedded, k.Report)
	}
	b.embedder.machine = first
	if k, embedded = b.open(rows...); !k.Report.Unchanged || len(embedded) > 0 {
		t.Errorf("the first machine embedded %q again, report %+v", embedded, k.Report)
	}

	// If the fingerprint does not distinguish the vectors, they are still not mixed.
	b.block.Name, b.embedder.machine = "mixed", &machine{can: []string{"half"}}
	b.open(rows...)
	b.embedder.machine = &machine{can: []string{"single"}}
	_, err := knowledge.Open(t.Context(), b.block, b.stages, knowledge.Options{})
	if err == nil || !strings.Contains(err.Error(), `was made with {"precision":"half"}, and letters cannot work with that here`) {
		t.Errorf("got %v", err)
	}
}
