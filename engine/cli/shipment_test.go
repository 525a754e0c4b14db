package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/remote/bus"
	"github.com/racflow/racflow/engine/internal/remote/natstest"
	"github.com/racflow/racflow/engine/internal/remote/shipment"

	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/result"
	"github.com/racflow/racflow/plugins"
	folders "github.com/racflow/racflow/sdk/sdktest/must"
)

const shippedFile = `
variable "where" { default = "" }
knowledge "k" {
  source { path = "rows.tsv" }
  embed { use = "hashing" }
  store {
    use = "local"
    STORE
  }
}
pipeline "p" {
  input { path = "items.tsv" }
  retrieve "near" {
    from = knowledge.k
    mode = "hybrid"
  }
  sample "knn" { use = "neighbours" }
  sample "linear" { use = "linear" }
  elect "e" { use = "majority" }
}
`

// elsewhere has a pipeline in another state folder answer, which has nothing of the first one's disk but what is
// shipped.
type elsewhere struct {
	conn  *bus.Conn
	state string
	sent  []string // names of what was uploaded
	part  *engine.Pipeline
	hide  string // folder of the file's sources
}

func (e *elsewhere) Begin(ctx context.Context, b engine.Beginning) error {
	files, err := b.Pipeline.Shipment()
	if err != nil {
		return err
	}
	shipped, err := shipment.PutShipped(ctx, e.conn, files)
	if err != nil {
		return err
	}
	for _, s := range shipped {
		if s.Moved {
			e.sent = append(e.sent, s.Name)
		}
	}
	packed, err := shipment.NewBundle(b.Pipeline)
	if err != nil {
		return err
	}
	kept := shipment.KeptFiles{Dir: filepath.Join(e.state, "kept")}
	path, o, err := packed.Unpack(ctx, e.conn, shipment.BundlePlace{State: e.state, Kept: kept})
	if err == nil {
		err = kept.Get(ctx, e.conn, shipped, e.state)
	}
	if err != nil {
		return err
	}
	if err := os.Rename(e.hide, e.hide+".gone"); err != nil {
		return err
	}
	defer os.Rename(e.hide+".gone", e.hide) //nolint:errcheck // the test fails then
	o.Builtin, o.Part = builtin, &engine.Part{Manifest: b.Manifest}
	if e.part, err = engine.Open(ctx, path, o); err != nil {
		return err
	}
	return e.part.Join(ctx)
}

func (e *elsewhere) Window(int) int { return 2 }

func (e *elsewhere) Answer(ctx context.Context, o run.Order) (run.Answers, error) {
	return e.part.Take(ctx, o)
}

func (e *elsewhere) End(context.Context, error) error {
	if e.part != nil {
		e.part.Close()
	}
	return nil
}

// runResults runs a file and returns its results as JSON lines, without how long they took.
func runResults(t *testing.T, path string, o engine.Options) string {
	t.Helper()
	p, err := engine.Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var all strings.Builder
	_, err = p.Work(t.Context(), func(batch []outcome.Result) error {
		for _, one := range batch {
			line, err := json.Marshal(result.Of(one, p.Definition().Cost))
			if err != nil {
				return err
			}
			all.Write(append(line, '\n'))
		}
		return nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// TestShipment: a local knowledge is taken to another state folder, by its segments and its log up to the last commit; what
// answers there is the same, also what stages have learnt. What both have is not sent again, once the knowledge
// changes.
func TestShipment(t *testing.T) {
	leaveTo(t, "command", "it is a run for each case; package ship shows them without a process")
	for name, c := range map[string]struct {
		store string
		rows  int
	}{"in the state folder": {"", 300}, "in a folder of its own": {`config { path = "collections" }`, 300}, "with segments": {"", 17_000}} { // more than a log keeps
		t.Run(name, func(t *testing.T) {
			rows, file := c.rows, strings.Replace(shippedFile, "STORE", c.store, 1)
			if rows > 1000 {
				if testing.Short() {
					t.Skip("it takes a while")
				}
				file = strings.Replace(file, `sample "linear" { use = "linear" }`, "", 1) // learning takes longer
			}
			dir := filepath.Join(t.TempDir(), "project")
			table := func(from, to int) {
				var text strings.Builder
				text.WriteString("id\ttext\tlabel\n")
				for i := from; i < to; i++ {
					fmt.Fprintf(&text, "%d\tsomebody asks for thing %d of kind %d\tkind %d\n", i, i, i%7, i%7)
				}
				write(t, dir, "rows.tsv", text.String())
			}
			write(t, dir, "p.hcl", file)
			write(t, dir, "items.tsv", "text\nthing 4 of kind 4\nsomebody asks for kind 2\nthing 250\nkind 0\n")
			path, state := filepath.Join(dir, "p.hcl"), filepath.Join(t.TempDir(), "worker")
			conn := connect(t, natstest.Start(t, 1).URL())
			home := filepath.Join(t.TempDir(), "state")
			work := func() (sent []string) {
				t.Helper()
				o := engine.Options{Builtin: builtin, State: home}
				want := runResults(t, path, o)
				remote := &elsewhere{conn: conn, state: state, hide: dir}
				o.Remote = remote
				if diff := cmp.Diff(want, runResults(t, path, o)); diff != "" {
					t.Errorf("(-here +elsewhere):\n%s", diff)
				}
				return remote.sent
			}
			table(0, rows)
			if sent := work(); len(sent) < 3 {
				t.Errorf("sent: %v", sent)
			}
			if sent := work(); len(sent) > 0 {
				t.Errorf("sent again: %v", sent)
			}
			table(5, rows+20)
			sent := strings.Join(work(), " ")
			if strings.Contains(sent, ".segment") || !strings.Contains(sent, "/log") {
				t.Errorf("sent after a change: %v", sent)
			}
			sound(t, state, rows)
			if left, err := os.ReadDir(filepath.Join(home, "shipments")); err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

// sound checks the collections in a worker's state folder.
func sound(t *testing.T, state string, rows int) {
	t.Helper()
	ask := func(args ...string) string {
		store := plugins.Commands()[0]
		var out bytes.Buffer
		store.SetOut(&out)
		store.SetArgs(append(args, state))
		folders.Do(t, store.ExecuteContext(t.Context()))
		return strings.TrimSpace(out.String())
	}
	ask("check")
	found := strings.Split(ask("stats", "--json"), "\n")
	if len(found) != 2 {
		t.Fatalf("%v", found)
	}
	for _, line := range found {
		var s struct {
			Collection                 string
			Entries, Segments, Removed int
		}
		folders.Do(t, json.Unmarshal([]byte(line), &s))
		labels := strings.HasSuffix(s.Collection, "-labels")
		if want := map[bool]int{true: 7, false: rows + 15}[labels]; s.Entries != want {
			t.Errorf("%+v, not %d entries", s, want)
		}
		if !labels && rows >= 16_384 && (s.Segments == 0 || s.Removed == 0) {
			t.Errorf("it is a test of less than it should be: %+v", s)
		}
	}
}

// A generation that another process changes between the start of a run and its shipment is not taken for the run's.
func TestShipmentChanged(t *testing.T) {
	dir := t.TempDir()
	path, o := filepath.Join(dir, "p.hcl"), engine.Options{Builtin: builtin, State: filepath.Join(dir, "state")}
	write(t, dir, "p.hcl", strings.Replace(shippedFile, "STORE", "", 1))
	write(t, dir, "items.tsv", "text\na\n")
	write(t, dir, "rows.tsv", "id\ttext\tlabel\n1\tone\ta\n2\ttwo\tb\n")
	var opened [2]*engine.Pipeline
	for i := range opened {
		p, err := engine.Open(t.Context(), path, o)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if _, err := p.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		opened[i] = p
	}
	before, err := opened[0].Shipment()
	if err != nil || len(before) < 2 {
		t.Fatalf("%v, %v", before, err)
	}
	contents := func() (all []string) {
		for _, f := range before {
			text, err := os.ReadFile(f.Path)
			all = append(all, string(text)+fmt.Sprint(err))
		}
		return all
	}
	was := contents()
	write(t, dir, "rows.tsv", "id\ttext\tlabel\n1\tone\ta\n3\tthree\tb\n")
	runResults(t, path, o)
	if diff := cmp.Diff(was, contents()); diff != "" {
		t.Errorf("what was taken has changed:\n%s", diff)
	}
	if again, err := opened[0].Shipment(); err != nil || cmp.Diff(before, again) != "" {
		t.Errorf("another shipment of the same run: %v, %v", again, err)
	}
	if _, err := opened[1].Shipment(); err == nil || !strings.Contains(err.Error(), "was made from other rows or documents since") {
		t.Errorf("%v", err)
	}
}
