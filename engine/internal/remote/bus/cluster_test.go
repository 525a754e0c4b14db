package bus

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/internal/remote/natstest"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// load publishes, answers and counts batches of a run until it is told to end; then it says how many are stored.
type load struct {
	t     *testing.T
	r     *Run
	stop  chan struct{}
	done  sync.WaitGroup
	moved chan int // the number of the last published batch
	last  int
}

func begin(t *testing.T, caller, worker *Run) *load {
	l := &load{t: t, r: caller, stop: make(chan struct{}), moved: make(chan int, 1<<20)}
	ctx := bounded(t)
	l.done.Go(func() {
		for seq := 1; ; seq++ {
			select {
			case <-l.stop:
				l.last = seq - 1
				return
			default:
			}
			if err := caller.Publish(ctx, Position{1, seq}, fmt.Append(nil, seq)); err != nil {
				t.Error(err)
				return
			}
			l.moved <- seq
		}
	})
	for range 2 {
		go func() {
			for {
				b, err := worker.Take(ctx)
				if err != nil {
					return
				}
				if _, err := worker.Answer(ctx, b.Position, b.Data); err != nil {
					return
				}
				_ = b.Done(ctx)
			}
		}()
	}
	return l
}

// further waits until so many more batches are published.
func (l *load) further(n int) {
	l.t.Helper()
	for range n {
		select {
		case <-l.moved:
		case <-time.After(patience):
			l.t.Fatal("nothing is published")
		}
	}
}

// end waits for all results, each of which has to be there once.
func (l *load) end() {
	l.t.Helper()
	close(l.stop)
	l.done.Wait()
	seen := map[int]bool{}
	for result, err := range l.r.Results(bounded(l.t), 0) {
		if err != nil {
			l.t.Fatal(err)
		}
		if result.Part != 1 {
			continue
		}
		if seen[result.Seq] || string(result.Data) != fmt.Sprint(result.Seq) {
			l.t.Errorf("batch %d again, or with another answer: %s", result.Seq, result.Data)
		}
		if seen[result.Seq] = true; len(seen) == l.last {
			break
		}
	}
	if len(seen) != l.last {
		l.t.Errorf("%d results of %d batches", len(seen), l.last)
	}
	l.t.Logf("%d batches", l.last)
}

// Replicas are as many as servers can hold: one where there are two servers, three where one of three is away, which is waited for if
// the servers want it.
func TestReplicas(t *testing.T) {
	if testing.Short() {
		t.Skip("clusters take half a minute")
	}
	for servers, want := range map[int]int{2: 1, 3: 3} {
		s := natstest.Start(t, servers)
		ctx := bounded(t)
		if servers == 3 {
			s.Stop(2)
			s.Wait()
		}
		c := connect(t, s.URL(), "c")
		create(t, c, Config{ID: "a1"})
		must.Do(t, c.PutFile(ctx, emptyDigest, strings.NewReader("")))
		for _, name := range []string{kvStream + index, itemsStream("a1"), kvStream + files} {
			if got := must.Get(c.js.Stream(ctx, name))(t).CachedInfo().Config.Replicas; got != want {
				t.Errorf("%d servers: %s has %d replicas", servers, name, got)
			}
		}
		if _, err := c.Create(ctx, Config{ID: "a2", Replicas: 5}); err == nil || !strings.Contains(err.Error(), "5 servers") && !strings.Contains(err.Error(), "fewer replicas") {
			t.Errorf("%d servers, 5 replicas: %v", servers, err)
		}
	}
}

const emptyDigest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
