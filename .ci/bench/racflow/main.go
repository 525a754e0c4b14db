// Command racflow is racflow's side of `make bench`: it does one measure's work
// in the way that bench.py asks of every contender (see contender.py).
//
// The store is measured in this process, as the peers' libraries are; the
// embedder and the whole classification go through plugin processes, as in a
// real run.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/racflow/racflow/engine/internal/process/host"
	"github.com/racflow/racflow/plugins"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/serve"
	"github.com/racflow/racflow/sdk/wire"
)

// contender is what one measure needs: its tasks by name, and what it found,
// for the comparison with the others.
type contender struct {
	tasks   map[string]func() (reply, error)
	answers any
}

// reply is what came of a task: n texts or queries, and named figures in
// milliseconds (or shares) per text or query.
type reply map[string]float64

// bench knows where things are.
type bench struct {
	ctx     context.Context
	data    string // folder of the inputs
	binary  string // racflow
	scratch string // removed at the end
	host    *host.Host
}

func main() {
	if os.Getenv(wire.CookieKey) == wire.CookieValue { // the host starts this program for each stage
		serve.Plugin(builtin())
		return
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "racflow:", err)
		os.Exit(1)
	}
}

func builtin() sdk.Plugin {
	return sdk.Plugin{Name: "racflow", Version: "bench", Stages: plugins.All()}
}

// run takes the arguments MEASURE DATA BINARY, for embed also MODEL and PRECISION.
func run() error {
	if len(os.Args) != 4 && (len(os.Args) != 6 || os.Args[1] != "embed") {
		return fmt.Errorf("usage: racflow MEASURE DATA BINARY, or racflow embed DATA BINARY MODEL PRECISION")
	}
	scratch, err := os.MkdirTemp("", "racflow-bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	b := &bench{ctx: context.Background(), data: os.Args[2], binary: os.Args[3], scratch: scratch}
	if b.host, err = host.New(host.Options{Builtin: builtin(), StateDir: scratch}); err != nil {
		return err
	}
	defer b.host.Close()
	if os.Args[1] == "vectors" {
		return b.vectors()
	}
	measures := map[string]func() (contender, error){
		"dense": b.dense, "bm25": b.bm25, "knn": b.knn, "size": b.size, "start": b.startup,
		"embed": func() (contender, error) { return b.embed(os.Args[4], os.Args[5]) },
	}
	open, ok := measures[os.Args[1]]
	if !ok {
		return fmt.Errorf("unknown measure %q", os.Args[1])
	}
	c, err := open()
	if err != nil {
		return err
	}
	return answer(c)
}

// answer tells the answers, then does the tasks named on standard input, one a
// line, until it ends.
func answer(c contender) error {
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(c.answers); err != nil {
		return err
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		task, ok := c.tasks[in.Text()]
		if !ok {
			return fmt.Errorf("unknown task %q", in.Text())
		}
		r, err := task()
		if err != nil {
			return err
		}
		if err := out.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) path(name string) string { return filepath.Join(b.data, name) }

// start runs a built-in stage in a process of its own.
func (b *bench) start(kind sdk.Kind, use, config string) (*host.Process, error) {
	return b.host.Start(b.ctx, host.Spec{
		Kind: kind, Use: use, Block: use, Config: json.RawMessage(config), StateDir: filepath.Join(b.scratch, use),
	})
}

func milliseconds(since time.Time) float64 { return float64(time.Since(since).Nanoseconds()) / 1e6 }
