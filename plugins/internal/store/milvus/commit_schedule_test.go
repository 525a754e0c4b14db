package milvus

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// schedule decides, by its seed alone, in which order the calls of processes have
// their effects, which of them fail and how, and who dies when.
type schedule struct {
	engine  commitEngine
	rand    *rand.Rand
	mu      sync.Mutex
	waiting []*call
	log     strings.Builder
	faults  int      // of 100 calls
	calm    bool     // nothing fails any more
	stalled *process // its calls are not answered
	begun   time.Time
}

// process is a writer or a reader; its calls wait for the schedule.
type process struct {
	*schedule
	name  string
	ctx   context.Context
	die   context.CancelFunc
	calls int
	done  bool
}

// call is one that is under way, or was when its caller gave it up.
type call struct {
	*process
	number int
	what   string
	args   any
	sent   time.Time
	left   bool // the caller has given it up
	answer chan commitAnswer
}

type commitAnswer struct {
	reply any
	err   error
}

// invoke waits until the schedule answers. Calls that change and read no rows are
// answered at once.
func invoke[Reply any](ctx context.Context, p *process, args any) (*Reply, error) {
	if p.ctx.Err() != nil {
		return nil, context.Canceled // what is dead calls nobody
	}
	p.mu.Lock()
	p.calls++
	method := strings.TrimSuffix(reflect.TypeOf(args).Elem().Name(), "Request")
	c := &call{process: p, number: p.calls, what: method + " " + summary(args), args: args, sent: time.Now(), answer: make(chan commitAnswer, 1)}
	switch args.(type) {
	case *milvuspb.InsertRequest, *milvuspb.UpsertRequest, *milvuspb.DeleteRequest, *milvuspb.QueryRequest:
		p.waiting = append(p.waiting, c)
	default:
		c.answer <- c.effect()
	}
	p.mu.Unlock()
	select {
	case a := <-c.answer:
		reply, _ := a.reply.(*Reply)
		return reply, a.err
	case <-ctx.Done():
		p.mu.Lock()
		defer p.mu.Unlock()
		c.left = true
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

var away = commitAnswer{err: status.Error(codes.Unavailable, "simulated")}

func (c *call) effect() commitAnswer {
	reply, err := c.engine.serve(c.args)
	return commitAnswer{reply, err}
}

func summary(args any) string {
	switch r := args.(type) {
	case *milvuspb.InsertRequest:
		return keysOf(r.FieldsData)
	case *milvuspb.UpsertRequest:
		return keysOf(r.FieldsData)
	case *milvuspb.DeleteRequest:
		return r.Expr
	case *milvuspb.QueryRequest:
		return r.Expr
	}
	return ""
}

func (s *schedule) note(format string, args ...any) {
	fmt.Fprintf(&s.log, "%8.3fs  %s\n", time.Since(s.begun).Seconds(), fmt.Sprintf(format, args...))
}

// run makes steps until all processes are done, and settles what came late.
func (s *schedule) run(processes []*process) {
	for {
		synctest.Wait()
		s.mu.Lock()
		if !slices.ContainsFunc(processes, func(p *process) bool { return !p.done }) {
			break
		}
		pause := s.step()
		s.mu.Unlock()
		time.Sleep(pause)
	}
	for len(s.waiting) > 0 {
		s.late(s.take(s.rand.IntN(len(s.waiting))))
	}
	s.mu.Unlock()
}

// step lets one thing happen and returns how long nothing happens then.
func (s *schedule) step() time.Duration {
	slices.SortFunc(s.waiting, func(a, b *call) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.what, b.what), a.number-b.number)
	})
	if !s.calm && s.rand.IntN(20) == 0 {
		s.stalled = nil
		if len(s.waiting) > 0 && s.rand.IntN(2) == 0 {
			s.stalled = s.waiting[s.rand.IntN(len(s.waiting))].process
			s.note("%s is stalled", s.stalled.name)
		}
	}
	var next []int // calls that can be answered
	for i, c := range s.waiting {
		if c.process != s.stalled && (!c.left || s.rand.IntN(20) == 0) {
			next = append(next, i)
		}
	}
	if len(next) == 0 || !s.calm && s.rand.IntN(60) == 0 {
		return s.pause()
	}
	i := next[s.rand.IntN(len(next))]
	c := s.waiting[i]
	if c.left {
		s.late(s.take(i))
		return 0
	}
	if s.rand.IntN(10) == 0 && s.engine.behind != nil {
		s.engine.behind = maps.Clone(s.engine.rows)
	}
	if s.calm {
		s.note("%s: %s", c.name, c.what)
		s.take(i).answer <- c.effect()
		return 0
	}
	switch chance := s.rand.IntN(1000) / s.faults; {
	case chance < 3:
		s.note("%s: %s is lost", c.name, c.what)
		s.take(i).answer <- away
	case chance < 6:
		s.note("%s: %s has its effect and no reply", c.name, c.what)
		s.take(i).effect()
		c.answer <- away
	case chance < 9:
		s.note("%s: %s fails, its effect is to come", c.name, c.what)
		c.left = true
		c.answer <- away
	case chance < 10:
		s.note("%s dies in %s", c.name, c.what)
		c.die()
	case chance < 13:
		pause := time.Duration(s.rand.IntN(60)) * time.Second
		s.note("%s: %s has its effect and a reply in %v", c.name, c.what, pause)
		reply := s.take(i).effect()
		time.AfterFunc(pause, func() { c.answer <- reply })
	default:
		s.note("%s: %s", c.name, c.what)
		s.take(i).answer <- c.effect()
	}
	return 0
}

// pause lets time pass. No call has its effect later than Grace after it was
// sent: commit.go relies on that.
func (s *schedule) pause() time.Duration {
	pause := 3 * time.Second
	if !s.calm {
		pause *= []time.Duration{1, 1, 1, 3, 11, 43}[s.rand.IntN(6)]
	}
	for i := len(s.waiting) - 1; i >= 0; i-- {
		switch c := s.waiting[i]; {
		case time.Since(c.sent)+pause < Grace:
		case c.left:
			s.late(s.take(i))
		default:
			s.note("%s: %s is lost", c.name, c.what)
			s.take(i).answer <- away
		}
	}
	s.note("nothing happens for %v", pause)
	return pause
}

// late settles a call whose caller has left.
func (s *schedule) late(c *call) {
	if _, reads := c.args.(*milvuspb.QueryRequest); reads {
		return
	}
	if s.rand.IntN(4) == 0 {
		s.note("%s: %s never has its effect", c.name, c.what)
		return
	}
	s.note("%s: %s has its effect late", c.name, c.what)
	c.effect()
}

func (s *schedule) take(i int) *call {
	c := s.waiting[i]
	s.waiting = slices.Delete(s.waiting, i, i+1)
	return c
}
