package lease

import (
	"errors"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/internal/process/governor"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestClaim: one process at a time has the claim, and another once it is over or given back.
func TestClaim(t *testing.T) {
	p := newPlace(t, Limits{}, usual())
	ctx, lasts := t.Context(), 300*time.Millisecond
	a, b := claim{run: p.open("a"), id: "a", lasts: lasts}, claim{run: p.open("b"), id: "b", lasts: lasts}
	take := func(c *claim) bool {
		t.Helper()
		return must.Get(c.take(ctx))(t)
	}
	if !take(&a) || take(&b) {
		t.Fatal("two have the claim, or none")
	}
	if mine, err := a.renew(ctx); !mine || err != nil {
		t.Fatalf("it is not renewed: %v", err)
	}
	p.until("the claim is over", func() bool { return take(&b) })
	if !time.Now().After(a.until) {
		t.Error("another has it before it is over")
	}
	if mine, err := a.renew(ctx); mine || err != nil {
		t.Errorf("it is renewed after another has it: %v", err)
	}
	if mine, err := b.renew(ctx); !mine || err != nil {
		t.Errorf("it is not renewed: %v", err)
	}
	if err := b.give(ctx); err != nil || !take(&a) {
		t.Errorf("it was given back, and another does not have it: %v", err)
	}
	b.revision = 0 // what was stored was not known to be
	a.until = time.Time{}
	if err := a.give(ctx); err != nil || take(&b) {
		t.Errorf("a claim that may be another's was given back: %v", err)
	}
	a.revision--
	if mine, err := a.renew(ctx); !mine || err != nil {
		t.Errorf("its own claim is not known: %v", err)
	}
}

// TestFence: who had the claim before cannot write the ledger, so it grants nothing that counts.
func TestFence(t *testing.T) {
	p := newPlace(t, Limits{Blocks: api(Limit{Concurrency: 8, Tokens: 60000}), Budget: Amount{Tokens: 5000}}, usual())
	var keepers []*Keeper
	var scribes []*ledgerWriter
	for range 2 {
		k := newKeeper(p.open("x"), p.limits, Options{Log: p.log()})
		k.claim.until = time.Now().Add(time.Minute)
		s := must.Get(k.open(t.Context()))(t)
		keepers, scribes = append(keepers, k), append(scribes, s)
		if k == keepers[0] { // a holder is granted something
			a, write := k.accounts.report(time.Now(), report{Holder: "w", Demand: governor.Demand{Number: 1,
				Limiters: []governor.Need{{Block: "api", Waiting: 4, Peak: 4, Tokens: governor.Credit{First: 100, Waiting: 400}}},
				Budget:   governor.Spending{First: &Amount{Tokens: 100}, Waiting: Amount{Tokens: 400}}}})
			if !write || a.Limiters[0].Share != 8 || a.Limiters[0].Tokens < 400 || a.Budget.Tokens < 400 {
				t.Fatalf("it is granted %+v", a)
			}
			if err := s.write(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := scribes[0].write(t.Context()); !errors.Is(err, errLost) {
		t.Errorf("it is written: %v", err)
	}
	b := keepers[1].accounts
	if len(b.former) != 1 || b.allowance.holders["w"].most.Tokens < 400 || b.records[name{"api", ""}].Tokens.Held < 400 {
		t.Errorf("the next does not know what was granted: %+v", b.ledger(time.Now()))
	}
	ask := func(holder string, share int) *answer {
		a, _ := b.report(time.Now(), report{Holder: holder, Demand: governor.Demand{Number: 2, Limiters: []governor.Need{{Block: "api", Share: share, InFlight: share, Waiting: 9, Peak: 9 + share}}}})
		return a
	}
	if a := ask("new", 0); a.Limiters[0].Share != 0 {
		t.Errorf("it gives on %d calls at a time that another may have", a.Limiters[0].Share)
	}
	if a := ask("w", 5); a.Limiters[0].Share > 5 || len(b.former) != 0 {
		t.Errorf("it gives %d calls at a time before it has heard that they are", a.Limiters[0].Share)
	}
	b.holders["new"].number = 0
	if a := ask("new", 0); a.Limiters[0].Share != 3 {
		t.Errorf("it gives %d calls at a time, 3 are nobody's", a.Limiters[0].Share)
	}
}
