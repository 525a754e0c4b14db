package lease

import (
	"fmt"
	"slices"
	"time"

	"github.com/racflow/racflow/engine/internal/process/governor"
)

// model is a worker as the accounts see it: it does what a governor does.
type model struct {
	w    *world
	name string
	dead bool
	// stall is until when it stands still, as a process that was stopped.
	stall time.Time
	jobs  int            // calls that its batches make at a time
	took  time.Duration  // of a call, at most
	size  func() float64 // of a call, in tokens
	spent string

	number    uint64
	awaits    uint64
	asked     time.Time
	until     time.Time
	given     governor.Given
	budget    int64
	used      governor.Need
	uses      []*governor.Use
	began     []time.Time
	cost      int64
	reserved  int64
	taken     int64
	calls     int
	inFlight  int
	atService []*call
	orphans   int
	next      []float64 // sizes of the calls that wait
	soon      bool
}

func (w *world) add(jobs int, took time.Duration, size func() float64) *model {
	m := &model{w: w, name: fmt.Sprint("worker", len(w.workers)), jobs: jobs, took: took, size: size}
	w.workers = append(w.workers, m)
	w.after(w.between(0, 300*time.Millisecond), m.tick)
	return m
}

// still has something done when the worker goes on, where it stands still.
func (m *model) still(do func()) bool {
	if m.dead {
		return true
	}
	if m.w.now.Before(m.stall) {
		m.w.after(m.stall.Sub(m.w.now), do)
		return true
	}
	return false
}

func (m *model) tick() {
	if m.still(m.tick) {
		return
	}
	m.w.after(200*time.Millisecond, m.tick)
	m.report()
}

// ask reports soon.
func (m *model) ask() {
	if !m.soon {
		m.soon = true
		m.w.after(20*time.Millisecond, func() {
			m.soon = false
			if !m.still(m.report) {
				m.report()
			}
		})
	}
}

func (m *model) report() {
	if m.dead || m.awaits != 0 && m.w.now.Sub(m.asked) < time.Second {
		return
	}
	m.fill()
	w := m.w
	m.number++
	m.awaits, m.asked = m.number, w.now
	r := report{Holder: m.name, Demand: m.demand()}
	number, asked := m.number, w.now
	w.send(func() {
		if k := w.keeper(); k != nil {
			k.report(r, func(a answer) {
				take := func() { m.take(number, asked, a) }
				if !m.still(take) {
					take()
				}
			})
		}
	})
}

func (m *model) over() bool { return !m.w.now.Before(m.until) }

func (m *model) demand() governor.Demand {
	n := m.used
	n.Block, n.InFlight, n.Waiting = "api", m.inFlight, len(m.next)
	n.Peak = n.InFlight + n.Waiting
	n.Requests.Most, n.Tokens.Most = m.given.Requests, m.given.Tokens
	if n.Share = m.given.Share; m.over() {
		n.Share, n.Requests.Most, n.Tokens.Most = 0, n.Requests.Used, n.Tokens.Used
	}
	limit := m.w.limits.Blocks[0]
	room := min(max(n.Share-n.InFlight, 1), len(m.next))
	waiting := 0.0
	for _, size := range m.next[:room] {
		n.Requests.First, n.Requests.Waiting = 1, n.Requests.Waiting+1
		n.Tokens.Waiting += min(size, float64(limit.Tokens))
		waiting += size
	}
	if room > 0 {
		n.Tokens.First = min(m.next[0], float64(limit.Tokens))
	}
	if k := len(m.uses); k > 0 {
		if n.Tally = m.uses[k-1].Number; m.w.now.Sub(m.began[k-1]) >= time.Second {
			n.Tally++
		}
	}
	for _, u := range m.uses {
		n.Uses = append(n.Uses, *u)
	}
	s := governor.Spending{Calls: m.calls, InFlight: m.inFlight}
	s.Spent.Tokens, s.Reserved.Tokens, s.Taken.Tokens, s.Waiting.Tokens = m.cost, m.reserved, m.taken, int64(waiting)
	if s.Most.Tokens = m.budget; m.over() {
		s.Most.Tokens = m.cost + m.reserved
	}
	if len(m.next) > 0 && m.cost+m.reserved+int64(m.next[0]) > m.budget {
		s.First = &Amount{Tokens: int64(m.next[0])}
	}
	return governor.Demand{Number: m.number, Limiters: []governor.Need{n}, Budget: s}
}

func (m *model) take(number uint64, asked time.Time, a answer) {
	if m.dead || number != m.awaits || m.w.now.Sub(asked) >= time.Second {
		return
	}
	m.awaits = 0
	if m.over() {
		m.orphan()
	}
	m.until, m.budget, m.spent = asked.Add(a.Lease), a.Budget.Tokens, a.Spent
	before := m.given
	m.given = a.Limiters[0]
	m.begin()
	if m.given.Share < before.Share && m.inFlight <= m.given.Share || len(m.next) > 0 && m.inFlight < m.given.Share && (m.given.Tokens > before.Tokens || m.given.Requests > before.Requests) {
		m.ask()
	}
}

// orphan notes that the calls under way outlive the lease.
func (m *model) orphan() {
	for _, c := range m.atService {
		if !c.orphan {
			c.orphan = true
			m.orphans++
		}
	}
}

// fill has batches make their next calls.
func (m *model) fill() {
	for m.spent == "" && m.inFlight+len(m.next) < m.jobs {
		m.next = append(m.next, m.size())
	}
}

// begin sends the calls that may be sent.
func (m *model) begin() {
	m.fill()
	limit := m.w.limits.Blocks[0]
	fits := func(limit int, used, most, amount float64) bool {
		return limit == 0 || used+min(amount, float64(limit)) <= most+rounding
	}
	for len(m.next) > 0 && m.spent == "" && !m.over() && m.inFlight < m.given.Share {
		size := m.next[0]
		if !fits(limit.Requests, m.used.Requests.Used, m.given.Requests, 1) || !fits(limit.Tokens, m.used.Tokens.Used, m.given.Tokens, size) {
			return
		}
		if m.w.limits.Budget.Tokens > 0 && m.cost+m.reserved+int64(size) > m.budget {
			return
		}
		m.next = m.next[1:]
		m.send(size)
	}
}

func (m *model) send(size float64) {
	w := m.w
	k := len(m.uses)
	if k == 0 || w.now.Sub(m.began[k-1]) >= time.Second {
		m.uses, m.began = append(m.uses, &governor.Use{Number: int64(k)}), append(m.began, w.now)
		k++
	}
	u := m.uses[k-1]
	u.Requests++
	u.Tokens += size
	m.used.Requests.Used++
	m.used.Requests.Taken++
	m.used.Tokens.Used += size
	m.used.Tokens.Taken += size
	m.reserved += int64(size)
	m.taken += int64(size)
	m.inFlight++
	c := &call{of: m, at: w.now, estimate: size, took: float64(int(size * (0.3 + 0.7*w.r.Float64())))}
	m.atService = append(m.atService, c)
	w.arrive(c)
	w.after(w.between(m.took/2, m.took), func() {
		c.done = true
		if !c.gone {
			w.service.tokens -= c.estimate - c.took
		}
		w.service.underWay--
		w.service.cost += int64(c.took)
		w.service.reserved -= int64(size)
		m.atService = slices.DeleteFunc(m.atService, func(o *call) bool { return o == c })
		if c.orphan {
			m.orphans--
		}
		notice := func() { m.notice(c, u) }
		if !m.still(notice) {
			notice()
		}
	})
}

// notice takes the answer of a call.
func (m *model) notice(c *call, u *governor.Use) {
	if m.dead {
		return
	}
	m.inFlight--
	m.calls++
	m.reserved -= int64(c.estimate)
	m.cost += int64(c.took)
	u.Tokens += c.took - c.estimate
	m.used.Tokens.Used += c.took - c.estimate
	if m.inFlight == m.given.Share {
		m.ask()
	}
	m.begin()
}
