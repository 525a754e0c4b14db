package lease

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestSpentIsKnown: a budget is spent but for less than the largest call may take, and then all know.
func TestSpentIsKnown(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		most := 10 + r.Float64()*2500
		limits := Limits{Blocks: []Limit{{Name: "api", Concurrency: 1 + r.IntN(40)}}, Budget: Amount{Tokens: 3000 + r.Int64N(100000)}}
		limits.Spent.Tokens = r.Int64N(2000)
		w := newWorld(t, seed, limits)
		w.loss = []float64{0, 0.05}[r.IntN(2)]
		w.post()
		for range 1 + r.IntN(5) {
			w.add(1+r.IntN(30), w.between(20*time.Millisecond, 3*time.Second), func() float64 { return float64(1 + int(w.r.Float64()*most)) })
		}
		unaware := func(m *model) bool { return m.spent == "" }
		for n := 0; n < 1000 && slices.ContainsFunc(w.workers, unaware); n++ {
			w.run(time.Second)
		}
		if i := slices.IndexFunc(w.workers, unaware); i >= 0 {
			t.Fatalf("seed %d: worker %d does not know that the budget is spent: %d of %d", seed, i, w.service.cost, limits.Budget.Tokens)
		}
		if left := limits.Budget.Tokens - limits.Spent.Tokens - w.service.cost; left < 0 || float64(left) > most {
			t.Fatalf("seed %d: %d of %d are left, and a call takes %g at most", seed, left, limits.Budget.Tokens, most)
		}
	}
}

// BenchmarkReports is what a report costs the keeper of a thousand workers.
func BenchmarkReports(b *testing.B) {
	w := newWorld(b, 1, Limits{Blocks: []Limit{{Name: "api", Concurrency: 4000, Tokens: 1 << 30}}, Budget: Amount{Tokens: 1 << 50}})
	k := newBook("keeper", w.limits, usual())
	var all []*model
	for range 1000 {
		m := w.add(64, time.Second, func() float64 { return 1000 })
		m.fill()
		all = append(all, m)
	}
	now := time.Unix(0, 0)
	for n := 0; b.Loop(); n++ {
		m := all[n%len(all)]
		m.number++
		now = now.Add(500 * time.Microsecond)
		w.now = now
		if a, _ := k.report(now, report{Holder: m.name, Demand: m.demand()}); a != nil {
			m.until, m.given, m.budget = now.Add(a.Lease), a.Limiters[0], a.Budget.Tokens
		}
	}
}
