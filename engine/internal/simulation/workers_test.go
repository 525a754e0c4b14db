package simulation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
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
  batch = 2
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
	over    bool // workers that die have no successors
	mu      sync.Mutex
	alive   []*machine
}

// begin is a machine that lives on after whatever dir has of it.
func (c *cluster) begin(dir string, steps int) *machine {
	m := c.machine(dir)
	if c.one(3) {
		m.deathAt, m.power = 1+c.draw(steps), c.one(2)
	}
	c.s.mu.Lock()
	c.s.machines[m.name] = m
	c.s.mu.Unlock()
	c.mu.Lock()
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

// stop ends all that is left.
func (c *cluster) stop() {
	c.mu.Lock()
	alive := slices.Clone(c.alive)
	c.mu.Unlock()
	for _, m := range alive {
		m.cancel()
	}
	c.workers.Wait()
	c.at.close()
	time.Sleep(time.Minute) // until no request waits for an answer any more
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
func (c *cluster) work(dir string) {
	for {
		m := c.begin(dir, 600)
		conn, err := c.connect(m)
		if err == nil {
			err = worker.Work(m.ctx, conn, worker.Options{Engine: m.options(), State: filepath.Join(dir, "worker"), Grace: time.Second})
			conn.Close()
		}
		c.end(m)
		c.note("%s ends: %v", m.name, err)
		if !m.died() {
			return
		}
		dir = m.left
	}
}

// lead is what a caller does until it ends.
func (c *cluster) lead(m *machine, id, resume string) (output string, err error) {
	conn, err := c.connect(m)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	o := m.options()
	far, err := caller.New(conn, caller.Options{Run: id, Servers: serversAt, State: o.State, Claim: 3 * time.Second,
		Say: func(format string, args ...any) { c.note("%s says "+format, append([]any{m.name}, args...)...) }})
	if err != nil {
		return "", err
	}
	o.Resume, o.Remote, o.Cluster = resume, far, &journal.ManifestCluster{Run: id, Servers: serversAt}
	return m.take(o)
}

// take takes the input through the pipeline.
func (m *machine) take(o engine.Options) (string, error) {
	p, err := engine.Open(m.ctx, filepath.Join(m.dir, "p.hcl"), o)
	if err != nil {
		return "", err
	}
	defer p.Close()
	var text bytes.Buffer
	out, err := result.NewWriter(&text, result.JSONL, result.Options{})
	if err != nil {
		return "", err
	}
	_, err = p.Work(m.ctx, func(all []outcome.Result) error {
		for _, one := range all {
			if err := out.Write(one); err != nil {
				return err
			}
		}
		return nil
	}, func(err error) error { return errors.Join(err, out.Close()) })
	return text.String(), err
}

// Workers that answer together, and die, lose the servers and each other, make what one machine makes.
func TestWorkers(t *testing.T) {
	var want string
	history(t, 0, func(w *world) {
		s := w.service()
		m := w.machine(w.files(farText, 6))
		s.machines[m.name] = m
		var err error
		if want, err = m.take(m.options()); err != nil {
			w.Fatal(err)
		}
		m.end()
	})
	histories(t, 300, func(w *world) {
		c := &cluster{world: w, s: w.service(), at: w.servers()}
		c.s.limit = 2
		c.s.mood = func() int {
			time.Sleep(time.Duration(w.draw(int(2 * time.Second))))
			return http.StatusOK
		}
		defer c.stop()
		for i := range 2 {
			dir := filepath.Join(w.dir, fmt.Sprint("worker", i))
			if err := os.Mkdir(dir, 0o700); err != nil {
				w.Fatal(err)
			}
			c.workers.Go(func() { c.work(dir) })
		}
		var got string
		dir := w.files(farText, 6)
		for try := 2; ; try++ {
			m := c.begin(dir, 300)
			resume := ""
			if _, left := journal.RunsOf(filepath.Join(dir, "state")).Newest(filepath.Join(dir, "p.hcl"), "p"); left {
				resume = engine.Newest
			}
			var err error
			got, err = c.lead(m, fmt.Sprintf("b%05d", 22220+try), resume)
			c.end(m)
			c.note("%s ends: %v", m.name, err)
			if err == nil && !m.died() {
				break
			}
			if !m.died() {
				w.Fatal(err)
			}
			if err := errors.Join(os.RemoveAll(dir), os.Rename(m.left, dir)); err != nil {
				w.Fatal(err)
			}
		}
		if got != want {
			w.Errorf("the output is\n%swant\n%s", got, want)
		}
		c.stop()
		if left := slices.Sorted(maps.Keys(c.at.streams)); len(left) > 2 {
			w.Errorf("at the servers stay %s", strings.Join(left, ", "))
		}
	})
}
