package knowledge_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/knowledge"
	"github.com/racflow/racflow/engine/knowledge/generation"
)

// machine resolves the precision of an embedder when that opens.
type machine struct {
	can       []string // the best one first
	tells     bool     // the fingerprint depends on it
	precision string   // that it works with now
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

// Two machines share a store. What the first has resolved for a generation holds for the
// second one's work on it.
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

// A machine that cannot work with what was resolved builds a generation of its own, and
// leaves the other one to the machine that it belongs to.
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

	// Where the fingerprint does not tell the vectors apart, they are not mixed.
	b.block.Name, b.embedder.machine = "mixed", &machine{can: []string{"half"}}
	b.open(rows...)
	b.embedder.machine = &machine{can: []string{"single"}}
	_, err := knowledge.Open(t.Context(), b.block, b.stages, knowledge.Options{})
	if err == nil || !strings.Contains(err.Error(), `was made with {"precision":"half"}, and letters cannot work with that here`) {
		t.Errorf("got %v", err)
	}
}
