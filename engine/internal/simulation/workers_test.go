package simulation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/remote/bus"
	"github.com/racflow/racflow/engine/internal/remote/caller"
	"github.com/racflow/racflow/engine/internal/remote/packet"
	"github.com/racflow/racflow/engine/internal/remote/worker"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/result"
	"github.com/racflow/racflow/sdk"
)

// The encoder of packets is made once and kept: not in a bubble.
var _, _ = packet.EncodeOrder(run.Order{})

const farText = `
limit "api" { concurrency = 2 }
pipeline "p" {
  batch = 1
  journal { sync = "batch" }
  input { path = "items.tsv" }
  prompt "ask" { use = "question" }
  sample "a" {
    use   = "openai"
    limit = limit.api
    config {
      base_url = "http://model/v1"
      model    = "a"
      probe    = false
      api_key  = secret("KEY")
    }
  }
  elect "e" { use = "majority" }
}
`

// question asks for a label without looking anything up.
func question() sdk.Stage {
	return sdk.PromptStage("question", "Asks for a label.", func(context.Context, sdk.Setup, struct{}) (sdk.Prompter, error) {
		return asks{}, nil
	}, sdk.Reads(sdk.ColumnText))
}

type asks struct{}

func (asks) Prompt(_ context.Context, b sdk.Batch) ([][]sdk.Prompt, error) {
	all := make([][]sdk.Prompt, len(b.Items))
	for i, item := range b.Items {
		all[i] = []sdk.Prompt{{Text: item.Text, Labels: labels, Fields: []string{sdk.LabelProperty}}}
	}
	return all, nil
}

const serversAt = "nats://127.0.0.1"

// cluster is a run on several machines.
type cluster struct {
	*world
	s       *service
	at      *servers
	workers sync.WaitGroup
	got     string
	whole   bool            // got is the whole output
	since   time.Time       // when it became that
	results map[string]bool // by subject
	mu      sync.Mutex
	alive   []*machine
	over    bool // workers that die have no successors
}

// begin is a machine that lives on after whatever dir has of it.
func (c *cluster) begin(name, dir string, steps int) *machine {
	m := c.machine(dir)
	m.name = name
	if c.one(3) {
		m.deathAt, m.power = 1+c.draw(steps), c.one(2)
	}
	c.mu.Lock()
	c.machines[name] = m
	c.alive = append(c.alive, m)
	c.mu.Unlock()
	return m
}

func (c *cluster) end(m *machine) {
	m.end()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.alive = slices.DeleteFunc(c.alive, func(one *machine) bool { return one == m })
}

// stored hears of each message that the servers have stored.
func (c *cluster) stored(subject string, data []byte) {
	switch of := strings.Split(subject, "."); {
	case strings.HasSuffix(subject, ".caller"):
		var seen caller.SeenCaller
		if err := json.Unmarshal(data, &seen); err != nil || seen.Done > seen.Published {
			c.Errorf("%d of %d batches are answered (%v)", seen.Done, seen.Published, err)
		}
	case len(of) == 5 && of[2] == "results":
		if c.results[subject] {
			c.Errorf("%s has two answers", subject)
		}
		if c.results[subject] = true; of[3] != "9" { // some process takes it for another part's, and the next position's
			of[3], of[4] = "9", fmt.Sprint(number(of[4])%6+1)
			late := &mail{subject: strings.Join(of, "."), data: data}
			c.at.store(c.at.streams["racflow_"+of[1]+"_results"], late)
		}
	case strings.HasSuffix(subject, ".end"):
		// The earlier run had admitted calls, which its workers may still make: for some seconds there are more than the limit.
		if c.chance(4, subject) == 0 {
			d := time.Duration(c.chance(int(time.Minute), "away"))
			time.AfterFunc(0, func() { c.at.stop(d) })
		}
		c.limit(0)
		time.AfterFunc(8*time.Second, func() { c.limit(2) })
	}
}

// trouble parts machines from the servers, and stops the servers.
func (c *cluster) trouble() {
	for range c.draw(4) {
		time.Sleep(time.Duration(c.draw(int(6 * time.Second))))
		c.mu.Lock()
		alive := slices.Clone(c.alive)
		c.mu.Unlock()
		if len(alive) < 3 { // the run is over
			return
		}
		d := time.Duration(c.draw(int(20 * time.Second)))
		switch m := alive[c.draw(len(alive))]; {
		case c.one(3):
			c.at.stop(d)
		default:
			c.at.part(m, d)
		}
	}
}

// costs checks that nothing was paid twice but what was under way when something went wrong.
func (c *cluster) costs(wrong int) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	more := 0
	for what, times := range c.s.paid {
		if more += times - 1; times > 1+wrong {
			c.Errorf("%s was paid %d times, and %d things went wrong", what, times, wrong)
		}
	}
	if more > 2*wrong {
		c.Errorf("%d calls were paid again, and %d things went wrong", more, wrong)
	}
}

func (c *cluster) limit(n int) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.limit = n
}

// cut ends all machines.
func (c *cluster) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	for _, m := range c.alive {
		m.cancel()
	}
}

func (c *cluster) ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over
}

// halt ends the workers.
func (c *cluster) halt() {
	c.cut()
	c.workers.Wait()
}

// stop ends all that is left.
func (c *cluster) stop() {
	c.halt()
	c.at.close()
	time.Sleep(time.Minute) // until no request waits for an answer any more
	if !c.at.until.IsZero() || len(c.at.apart) > 0 {
		// nats.go has flushed connections that it made again, and keeps the timers for that in a pool of all bubbles.
		runtime.GC()
		runtime.GC()
	}
}

// connect waits until the servers can be reached.
func (c *cluster) connect(m *machine) (*bus.Conn, error) {
	for {
		conn, err := bus.Connect(m.ctx, bus.Options{Servers: serversAt, Name: m.name, Dial: at{c.at, m}})
		if err == nil {
			context.AfterFunc(m.ctx, func() {
				if m.died() {
					conn.Close()
				}
			})
			return conn, nil
		}
		if m.ctx.Err() != nil {
			return nil, err
		}
	}
}

// work is the life of a worker, and of those that come after it.
func (c *cluster) work(m *machine) {
	name, dir := m.name, m.dir
	for n := 2; ; n++ {
		conn, err := c.connect(m)
		if err == nil {
			err = worker.Work(m.ctx, conn, worker.Options{Engine: m.options(), State: filepath.Join(dir, "worker"), Grace: time.Second})
			conn.Close()
		}
		c.end(m)
		if !m.died() || c.ended() {
			return
		}
		c.note("%s has ended: %v", m.name, err)
		dir = m.left
		m = c.begin(fmt.Sprintf("%s-%d", name, n), dir, 600)
	}
}

// lead is what a caller does until it ends.
func (c *cluster) lead(m *machine, id, resume string) error {
	conn, err := c.connect(m)
	if err != nil {
		return err
	}
	defer conn.Close()
	o := m.options()
	far, err := caller.New(conn, caller.Options{Run: id, Servers: serversAt, State: o.State, Claim: 2 * time.Second,
		Say: func(format string, args ...any) { c.note("%s says "+format, append([]any{m.name}, args...)...) }})
	if err != nil {
		return err
	}
	o.Resume, o.Remote, o.Cluster = resume, far, &journal.ManifestCluster{Run: id, Servers: serversAt}
	return m.take(o, func(text string) { c.got, c.whole, c.since = text, true, time.Now() })
}

// take takes the input through the pipeline.
func (m *machine) take(o engine.Options, whole func(output string)) error {
	p, err := engine.Open(m.ctx, filepath.Join(m.dir, "p.hcl"), o)
	if err != nil {
		return err
	}
	defer p.Close()
	var text bytes.Buffer
	out, err := result.NewWriter(&text, result.JSONL, result.Options{})
	if err != nil {
		return err
	}
	_, err = p.Work(m.ctx, func(all []outcome.Result) error {
		for _, one := range all {
			if err := out.Write(one); err != nil {
				return err
			}
		}
		return nil
	}, func(err error) error {
		if err = errors.Join(err, out.Close()); err == nil {
			whole(text.String())
		}
		return err
	})
	return err
}

// sweep removes what a caller that died at the end of the run has left at the servers, as later callers do, or people.
func (c *cluster) sweep() {
	time.Sleep(25 * time.Hour)
	m := c.machine(filepath.Join(c.dir, "first"))
	defer m.end()
	conn, err := c.connect(m)
	if err != nil {
		c.Fatal(err)
	}
	defer conn.Close()
	later, err := caller.New(conn, caller.Options{})
	if err != nil {
		c.Fatal(err)
	}
	later.Sweep(m.ctx)
	ids, err := conn.Runs(m.ctx)
	for _, id := range ids {
		c.note("run %s is removed", id)
		r, err := conn.Open(m.ctx, id)
		if err == nil {
			err = r.Remove(m.ctx)
		}
		if err != nil {
			c.Error(err)
		}
	}
	if err != nil {
		c.Error(err)
	}
}

// Workers that answer together, and die, lose the servers and each other, make what one machine makes.
func TestWorkers(t *testing.T) {
	var want string
	history(t, 0, func(w *world) {
		w.service()
		m := w.machine(w.files(farText, 6))
		if err := m.take(m.options(), func(text string) { want = text }); err != nil {
			w.Fatal(err)
		}
		m.end()
	})
	histories(t, 250, func(w *world) {
		c := &cluster{world: w, s: w.service(), at: w.servers(), results: map[string]bool{}}
		c.s.limit = 2
		c.at.watch = c.stored
		c.s.takes = func(what string) time.Duration { return time.Duration(w.chance(int(3*time.Second), what)) }
		defer c.stop()
		for i := range 2 {
			dir := filepath.Join(w.dir, fmt.Sprint("worker", i))
			if err := os.Mkdir(dir, 0o700); err != nil {
				w.Fatal(err)
			}
			m := c.begin(fmt.Sprint("worker", i), dir, 600)
			c.workers.Go(func() { c.work(m) })
		}
		if w.one(2) {
			c.workers.Go(c.trouble)
		}
		if w.one(4) {
			c.at.loss = 60
		}
		late := time.AfterFunc(time.Hour, func() {
			w.Error("the run does not come to its end")
			c.cut()
		})
		defer late.Stop()
		dir := w.files(farText, 6)
		for try := 2; ; try++ {
			m := c.begin(fmt.Sprint("caller", try), dir, 300)
			resume := ""
			if _, left := journal.RunsOf(filepath.Join(dir, "state")).Newest(filepath.Join(dir, "p.hcl"), "p"); left {
				resume = engine.Newest
			}
			err := c.lead(m, fmt.Sprintf("b%05d", 22220+try), resume)
			c.end(m)
			c.note("%s ends: %v", m.name, err)
			if c.whole {
				if took := time.Since(c.since); took > 40*time.Second {
					w.Errorf("the end of the run took %s", took)
				}
				break
			}
			if !m.died() {
				w.Fatal(err)
			}
			m.survive()
		}
		late.Stop()
		if c.got != want {
			w.Errorf("the output is\n%swant\n%s", c.got, want)
		}
		c.halt()
		wrong := c.faults("killed", "power failure", "partition", "servers stopped", "lost message")
		c.costs(wrong)
		if len(c.at.streams) > 2 && wrong > 0 {
			c.sweep()
		}
		if left := slices.Sorted(maps.Keys(c.at.streams)); len(left) > 2 {
			w.Errorf("at the servers stay %s", strings.Join(left, ", "))
		}
	})
}
