package lease

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

var seeds = flag.Int("seeds", 2000, "how many schedules TestSchedules goes through")

func newWorld(t testing.TB, seed uint64, limits Limits) *world {
	return &world{t: t, seed: seed, r: rand.New(rand.NewPCG(seed, 22)), now: time.Unix(0, 0), limits: limits}
}

func (w *world) post() *post {
	p := &post{w: w, name: fmt.Sprint("keeper", len(w.keepers))}
	w.keepers = append(w.keepers, p)
	p.tick()
	return p
}

// TestSchedules goes through random schedules: workers that die, that stand still for longer than
// their lease and go on, that come; keepers that die and that stand still; lost and late messages.
func TestSchedules(t *testing.T) {
	n := *seeds
	if testing.Short() {
		n /= 10
	}
	for seed := range uint64(n) {
		simulate(t, seed)
	}
}

func simulate(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	limit := Limit{Name: "api", Concurrency: 1 + r.IntN(40)}
	if r.IntN(2) == 0 {
		limit.Tokens = 3000 + r.IntN(100000)
	}
	if r.IntN(3) == 0 {
		limit.Requests = 1 + r.IntN(600)
	}
	limits := Limits{Blocks: []Limit{limit}}
	if r.IntN(2) == 0 {
		limits.Budget.Tokens = 5000 + r.Int64N(400000)
	}
	w := newWorld(t, seed, limits)
	w.loss = []float64{0, 0, 0.02, 0.3}[r.IntN(4)]
	w.slow = []time.Duration{0, 100 * time.Millisecond, 1500 * time.Millisecond}[r.IntN(3)]
	for range 2 {
		w.post()
	}
	most := 10 + r.Float64()*2500
	took := w.between(20*time.Millisecond, 5*time.Second)
	if r.IntN(4) == 0 {
		took = w.between(5*time.Second, 30*time.Second)
	}
	size := func() float64 { return float64(1 + int(w.r.Float64()*most)) }
	for range 1 + r.IntN(5) {
		w.add(1+r.IntN(30), took, size)
	}
	for range r.IntN(12) { // what happens to machines
		what := r.IntN(6)
		w.after(w.between(0, 90*time.Second), func() {
			m := w.workers[w.r.IntN(len(w.workers))]
			p := w.keepers[w.r.IntN(len(w.keepers))]
			switch what {
			case 0:
				m.dead = true
				w.add(1+w.r.IntN(30), took, size)
			case 1, 2:
				m.stall = w.now.Add(w.between(0, 25*time.Second))
			case 3:
				p.stall = w.now.Add(w.between(0, 15*time.Second))
			case 4:
				if p.accounts != nil {
					p.dead = true
					w.post()
				}
			case 5:
				m.jobs = 1 + w.r.IntN(30)
			}
		})
	}
	w.run(150 * time.Second)
	if w.service.begun == 0 && w.loss < 0.3 {
		t.Errorf("no call was sent")
	}
}

// TestIdeal keeps 64 calls in flight over four workers.
func TestIdeal(t *testing.T) {
	for name, test := range map[string]struct {
		limit Limit
		jobs  []int
		took  time.Duration
		ideal float64 // calls per second
		lost  float64
	}{
		"even":       {Limit{Concurrency: 64}, []int{64, 64, 64, 64}, 600 * time.Millisecond, 64 / 0.45, 0},
		"exact":      {Limit{Concurrency: 64}, []int{16, 16, 16, 16}, 600 * time.Millisecond, 64 / 0.45, 0},
		"one works":  {Limit{Concurrency: 64}, []int{64, 0, 0, 0}, 600 * time.Millisecond, 64 / 0.45, 0},
		"uneven":     {Limit{Concurrency: 64}, []int{100, 3, 30, 7}, 600 * time.Millisecond, 64 / 0.45, 0},
		"few":        {Limit{Concurrency: 3}, []int{8, 8, 8, 8}, 600 * time.Millisecond, 3 / 0.45, 0},
		"lost":       {Limit{Concurrency: 64}, []int{64, 64, 64, 64}, 600 * time.Millisecond, 64 / 0.45, 0.05},
		"tokens":     {Limit{Concurrency: 64, Tokens: 100000}, []int{64, 64, 64, 64}, 600 * time.Millisecond, 100000 / 60 / 650.0, 0},
		"requests":   {Limit{Concurrency: 64, Requests: 600}, []int{64, 64, 64, 64}, 600 * time.Millisecond, 10, 0},
		"both":       {Limit{Concurrency: 64, Requests: 400, Tokens: 400000}, []int{64, 64, 64, 64}, 600 * time.Millisecond, 400 / 60.0, 0},
		"few tokens": {Limit{Concurrency: 64, Tokens: 3200}, []int{4, 4, 4, 4}, 600 * time.Millisecond, 2200 / 60 / 650.0, 0}, // what room a call of 1,000 leaves
		"slow":       {Limit{Concurrency: 64, Requests: 150}, []int{64, 64, 64, 64}, 20 * time.Second, 2.5, 0},
	} {
		t.Run(name, func(t *testing.T) {
			test.limit.Name = "api"
			w := newWorld(t, 1, Limits{Blocks: []Limit{test.limit}})
			w.loss = test.lost
			w.post()
			for _, jobs := range test.jobs {
				w.add(jobs, test.took, func() float64 { return 1000 })
			}
			w.run(2 * time.Minute)
			before := w.service.begun
			w.run(10 * time.Minute)
			share := float64(w.service.begun-before) / 600 / test.ideal
			t.Logf("%.3f of the ideal rate, at most %d at a time", share, w.service.most)
			if share < 0.9 {
				t.Errorf("%.3f of the ideal rate", share)
			}
		})
	}
}
