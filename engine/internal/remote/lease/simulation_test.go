package lease

import (
	"flag"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
)

var (
	seeds = flag.Int("seeds", 2000, "how many schedules TestSchedules goes through")
	first = flag.Uint64("first", 0, "seed of the first of them")
)

// TestSchedules goes through random schedules: workers that die, that stand still for longer than the keeper waits for them and
// go on, that come; keepers that die and that stand still; lost and late messages.
func TestSchedules(t *testing.T) {
	n := *seeds
	if testing.Short() {
		n /= 20
	}
	idle := 0 // schedules without a call: a new keeper may take a minute for used, and then there was another
	for seed := *first; seed < *first+uint64(n); seed++ {
		synctest.Test(t, func(t *testing.T) {
			if simulate(t, seed) == 0 {
				idle++
			}
		})
	}
	if idle > n/10 {
		t.Errorf("no call was sent in %d of %d schedules", idle, n)
	}
}

func simulate(t *testing.T, seed uint64) (calls int) {
	r := rand.New(rand.NewPCG(seed, 1))
	limit := pipeline.Limit{Name: "api", Concurrency: 1 + r.IntN(40)}
	if r.IntN(2) == 0 {
		limit.Tokens = 3000 + r.IntN(100000)
	}
	if r.IntN(3) == 0 {
		limit.Requests = 1 + r.IntN(600)
	}
	limits := Limits{Blocks: []pipeline.Limit{limit}}
	if r.IntN(2) == 0 {
		limits.Budget.Tokens = 5000 + r.Int64N(400000)
	}
	w := newWorld(t, seed, limits)
	w.loss = []float64{0, 0, 0.01, 0.1}[r.IntN(4)]
	w.slow = []time.Duration{0, 100 * time.Millisecond, 1500 * time.Millisecond}[r.IntN(3)]
	for range 2 {
		w.keep()
	}
	most := 10 + r.Float64()*2500
	took := w.between(200*time.Millisecond, 5*time.Second)
	if r.IntN(4) == 0 {
		took = w.between(5*time.Second, 30*time.Second)
	}
	size := func() float64 { return float64(1 + int(w.r.Float64()*most)) }
	for range 1 + r.IntN(4) {
		w.add(1+r.IntN(30), took, size)
	}
	began, at := time.Now(), time.Duration(0)
	for range r.IntN(12) { // what happens to machines
		at += time.Duration(r.Int64N(int64(16 * time.Second)))
		time.Sleep(time.Until(began.Add(at)))
		m, p := w.workers[r.IntN(len(w.workers))], w.keepers[r.IntN(len(w.keepers))]
		switch r.IntN(6) {
		case 0:
			m.die()
			w.add(1+r.IntN(30), took, size)
		case 1, 2:
			m.stop(time.Now().Add(time.Duration(r.Int64N(int64(25 * time.Second)))))
		case 3:
			p.stop(time.Now().Add(time.Duration(r.Int64N(int64(15 * time.Second)))))
		case 4:
			p.die()
			w.keep()
		case 5:
			m.work(r.IntN(30))
		}
	}
	time.Sleep(time.Until(began.Add(110 * time.Second)))
	w.finish()
	return w.begun
}

// TestIdeal keeps as many calls in flight over four workers as their limit allows.
func TestIdeal(t *testing.T) {
	for name, test := range map[string]struct {
		limit pipeline.Limit
		jobs  []int
		took  time.Duration
		ideal float64 // calls per second

	}{
		"even":       {pipeline.Limit{Concurrency: 64}, []int{64, 64, 64, 64}, 600 * time.Millisecond, 64 / 0.45},
		"one works":  {pipeline.Limit{Concurrency: 64}, []int{64, 0}, 600 * time.Millisecond, 64 / 0.45},
		"uneven":     {pipeline.Limit{Concurrency: 64}, []int{100, 3, 30, 7}, 600 * time.Millisecond, 64 / 0.45},
		"few":        {pipeline.Limit{Concurrency: 3}, []int{8, 8, 8, 8}, 600 * time.Millisecond, 3 / 0.45},
		"tokens":     {pipeline.Limit{Concurrency: 64, Tokens: 100000}, []int{64, 64, 64, 64}, 600 * time.Millisecond, 100000 / 60 / 650.0},
		"requests":   {pipeline.Limit{Concurrency: 64, Requests: 600}, []int{64, 64, 64, 64}, 600 * time.Millisecond, 10},
		"both":       {pipeline.Limit{Concurrency: 64, Requests: 400, Tokens: 400000}, []int{64, 64, 64, 64}, 600 * time.Millisecond, 400 / 60.0},
		"few tokens": {pipeline.Limit{Concurrency: 64, Tokens: 3200}, []int{4, 4, 4, 4}, 600 * time.Millisecond, 2200 / 60 / 650.0}, // what room a call of 1,000 leaves
		"slow":       {pipeline.Limit{Concurrency: 64, Requests: 150}, []int{64, 64, 64, 64}, 20 * time.Second, 2.5},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test.limit.Name = "api"
				w := newWorld(t, 1, Limits{Blocks: []pipeline.Limit{test.limit}})
				w.keep()
				for _, jobs := range test.jobs {
					w.add(jobs, test.took, func() float64 { return 1000 })
				}
				time.Sleep(70 * time.Second)
				w.mu.Lock()
				before := w.begun
				w.mu.Unlock()
				time.Sleep(time.Minute)
				w.mu.Lock()
				share := float64(w.begun-before) / 60 / test.ideal
				t.Logf("%.3f of the ideal rate, at most %d at a time", share, w.most)
				w.mu.Unlock()
				w.finish()
				if share < 0.9 {
					t.Errorf("%.3f of the ideal rate", share)
				}
			})
		})
	}
}
