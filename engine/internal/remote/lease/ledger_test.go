package lease

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/internal/process/governor"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestLedger: the next keeper knows what is spent; in another part of the run that begins anew.
func TestLedger(t *testing.T) {
	limits := Limits{Blocks: api(Limit{Concurrency: 8, Tokens: 60000}), Budget: Amount{Tokens: 1000}, Part: 1}
	now := time.Unix(0, 0)
	ask := func(b *accounts, number uint64, tally, spent, most int64) *answer {
		s := governor.Spending{Most: Amount{Tokens: most}, Spent: Amount{Tokens: spent}, Calls: 3, First: &Amount{Tokens: 200}, Waiting: Amount{Tokens: 200}}
		a, _ := b.report(now, report{Holder: "w", Demand: governor.Demand{Number: number, Budget: s,
			Limiters: []governor.Need{{Block: "api", Tally: tally, Tokens: governor.Credit{Used: 500, Most: 500}, Uses: []governor.Use{{Number: 1, Tokens: 500}}}}}})
		return a
	}
	b := newBook("a", limits, usual())
	if a := ask(b, 1, 0, 700, 700); a.Budget.Tokens != 900 || a.Spent != "" {
		t.Fatalf("it is granted %+v", a)
	}
	if a := ask(b, 2, 2, 900, 900); a.Spent != "the budget of 1000 tokens is spent: 900 in 3 calls, and the next may take 200" {
		t.Fatalf("%q", a.Spent)
	}
	data := must.Get(json.Marshal(b.ledger(now)))(t)
	var l Ledger
	if err := json.Unmarshal(data, &l); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(l.Holders, map[string]Account{"w": {Most: Amount{Tokens: 900}, Calls: 3}}); diff != "" {
		t.Error(diff)
	}
	if used := l.Rates[0].Tokens.Used; len(used) != 1 || used[0] != 500 {
		t.Errorf("%+v", l.Rates)
	}
	for part, want := range []int64{900, 900, 1100} { // 0 is a definition that knows of no parts
		of := limits
		of.Part = part
		next := takeOver(now, "b", l, of, 10*time.Second, usual())
		if _, free := next.allowance.state().unspent, next.allowance.state().free; part < 2 && free.Tokens != 100 {
			t.Errorf("part %d: %d tokens are free", part, free.Tokens)
		}
		a := ask(next, 3, 2, 900, 900)
		if a.Budget.Tokens != want || (a.Spent == "") != (part == 2) {
			t.Errorf("part %d: it is granted %+v", part, a)
		}
		if w := next.pools[name{"api", ""}].tokens; w.sum != 500 {
			t.Errorf("part %d: %g tokens are known to be used", part, w.sum)
		}
		now = now.Add(45 * time.Second)
		if next.pools[name{"api", ""}].advance(now); next.pools[name{"api", ""}].tokens.sum != 500 {
			t.Error("they are forgotten before their minute is over")
		}
		now = now.Add(6 * time.Second)
		if next.pools[name{"api", ""}].advance(now); next.pools[name{"api", ""}].tokens.sum != 0 {
			t.Error("they count for longer than their minute")
		}
	}
}
