//go:build linux

package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// spendItems is the number of items on which the free voters agree more or less: in item i, i%10 of
// the words speak for another label.
const spendItems = 100

// newSpend is newPaid with such items, and an election that shows how sure it is.
func newSpend(t *testing.T, o modelserver.Options) *paid {
	t.Helper()
	p := newPaid(t)
	var items strings.Builder
	items.WriteString("id\ttext\n")
	for i := range spendItems {
		k := i * 7 % 10
		fmt.Fprintf(&items, "q%03d\t%s%s number %03d\n", i, strings.Repeat("apple ", 10-k), strings.Repeat("bus ", k), i)
	}
	p.change(t, `"majority"`, `"soft"`, `n     = 2`, `n     = 1`)
	write(t, p.dir, "items.tsv", items.String())
	if o.Answer == nil {
		o.Answer = func(modelserver.Ask, int) string { return "vehicle" }
	}
	p.server = modelserver.Serve(t, o)
	return p
}

// spent is a result of a run.
type spent struct {
	ID        string
	Answer    *string
	Agreement float64
	Missing   []string
	Votes     []struct{ Voter string }
}

func (s spent) asked() bool {
	return slices.ContainsFunc(s.Votes, func(v struct{ Voter string }) bool { return v.Voter == "llm" })
}

// leastSure returns the ids of the n items on which the free voters agree least, from a run that may
// ask nobody.
func leastSure(t *testing.T, n int) []string {
	t.Helper()
	p := newSpend(t, modelserver.Options{})
	code, stderr := p.run(t, "--calls", "0")
	if code != 0 || p.server.Calls() != 0 || !strings.Contains(stderr, "\n0 of 100 items sent to llm, chosen by confidence: 0 of 0 calls; the others would cost about 0.0") {
		t.Fatalf("exit code %d, %d calls\n%s", code, p.server.Calls(), stderr)
	}
	all := jsonLines[spent](t, p.output(t))
	if len(all) != spendItems {
		t.Fatalf("%d items", len(all))
	}
	for _, s := range all {
		if s.Answer == nil || s.asked() || len(s.Missing) > 0 {
			t.Fatalf("%+v", s)
		}
	}
	slices.SortStableFunc(all, func(a, b spent) int { return cmp.Compare(a.Agreement, b.Agreement) })
	var ids []string
	for _, s := range all[:n] {
		ids = append(ids, s.ID)
	}
	slices.Sort(ids)
	return ids
}

func askedIDs(all []spent) []string {
	var ids []string
	for _, s := range all {
		if s.asked() {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// TestCalls makes a number of calls, about the items on which the free voters agree least. They are
// the same items each time.
func TestCalls(t *testing.T) {
	want := leastSure(t, 20)
	var first string
	for i := range 2 {
		p := newSpend(t, modelserver.Options{Latency: time.Duration(i) * 10 * time.Millisecond})
		code, stderr := p.run(t, "--calls", "20")
		if code != 0 || p.server.Calls() != 20 || !strings.Contains(stderr, "\n20 of 100 items sent to llm, chosen by confidence: 20 of 20 calls; the others would cost about 0.0") {
			t.Fatalf("exit code %d, %d calls\n%s", code, p.server.Calls(), stderr)
		}
		got := p.output(t)
		if ids := askedIDs(jsonLines[spent](t, got)); !slices.Equal(ids, want) {
			t.Errorf("asked %v, want %v", ids, want)
		}
		if first == "" {
			first = got
		}
		if got != first {
			t.Error("the second run gives another output")
		}
		if code, _ := p.run(t, "--calls", "20"); code != 0 || p.server.Calls() != 20 || p.output(t) != first {
			t.Errorf("exit code %d, %d calls with the cache", code, p.server.Calls())
		}
	}
}

// TestBudget spends an amount of money: never more, and nearly all of it. If the answers come from
// the cache, it is about the same items.
func TestBudget(t *testing.T) {
	want := leastSure(t, spendItems)
	const budget = 0.012
	p := newSpend(t, modelserver.Options{})
	p.change(t, `model    = "test"`, "model    = \"test\"\n max_tokens = 10\n profile { thinking = false }")
	code, stderr := p.run(t, "--budget", fmt.Sprint(budget))
	calls, first := p.server.Calls(), p.output(t)
	var cost float64
	at := strings.LastIndex(stderr, "cost ")
	if _, err := fmt.Sscanf(stderr[at:], "cost %g", &cost); err != nil || code != 0 || cost > budget || cost < 0.8*budget || calls < 10 || calls == spendItems {
		t.Fatalf("exit code %d, %d calls cost %v of %v, %v\n%s", code, calls, cost, budget, err, stderr)
	}
	if ids := askedIDs(jsonLines[spent](t, first)); len(ids) != calls || len(want) != spendItems {
		t.Errorf("asked %v", ids)
	}
	if code, stderr = p.run(t, "--budget", fmt.Sprint(budget)); code != 0 || p.server.Calls() != calls || p.output(t) != first {
		t.Errorf("exit code %d, %d calls with the cache\n%s", code, p.server.Calls(), stderr)
	}
	if code, stderr = p.run(t, "--budget", "0"); code != 0 || p.server.Calls() != calls || !strings.Contains(stderr, "\n0 of 100 items sent to llm, chosen by confidence: 0.00 of 0.00 spent; the others would cost about 0.0") {
		t.Errorf("exit code %d, %d calls\n%s", code, p.server.Calls(), stderr)
	}
}

// TestBudgetOfAKnownModel: once a run has found out that the model does not think, a budget is kept,
// although the file says nothing about it.
func TestBudgetOfAKnownModel(t *testing.T) {
	const budget = 0.012
	p := newSpend(t, modelserver.Options{})
	p.change(t, `model    = "test"`, "model    = \"test\"\n max_tokens = 10")
	if code, stderr := p.run(t, "--calls", "1"); code != 0 || len(p.server.Probes()) == 0 {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	code, stderr := p.run(t, "--budget", fmt.Sprint(budget))
	var cost float64
	at := strings.LastIndex(stderr, "cost ")
	if _, err := fmt.Sscanf(stderr[at:], "cost %g", &cost); err != nil || code != 0 || cost > budget || cost < 0.8*budget {
		t.Errorf("exit code %d, %v\n%s", code, err, stderr)
	}
}
