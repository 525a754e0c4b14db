package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/engine/internal/remote/bus"
	"github.com/racflow/racflow/engine/internal/remote/caller"
	"github.com/racflow/racflow/engine/internal/remote/natstest"
	"github.com/racflow/racflow/engine/internal/remote/packet"
	"github.com/racflow/racflow/engine/internal/remote/shipment"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/result"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

var builtin = engine.Serve([]sdk.Stage{mortal(), enginetest.Majority()})

// mortal is a voter whose answer is the text. The first time that it is asked about a text "die" its process ends, and
// starts no more as long as its folder has a file broken.
func mortal() sdk.Stage {
	return sdk.SampleStage("mortal", "A voter of the test.", func(_ context.Context, _ sdk.Setup, c mortalConfig) (sdk.Sampler, error) {
		if there(filepath.Join(c.Folder, "broken")) {
			return nil, errors.New("it is broken")
		}
		return c, nil
	}, sdk.Reads(sdk.ColumnText))
}

type mortalConfig struct {
	Folder string `config:"folder" affects_output:"false" doc:"Where the files broken and died are."`
	Key    string `config:"key" doc:"A secret."`
}

func (m mortalConfig) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	samples := make([][]sdk.Sample, len(b.Items))
	for i, it := range b.Items {
		if m.Folder != "" && it.Text == "die" && !there(filepath.Join(m.Folder, "died")) {
			for _, name := range []string{"broken", "died"} {
				if err := os.WriteFile(filepath.Join(m.Folder, name), nil, 0o600); err != nil {
					return nil, err
				}
			}
			os.Exit(9)
		}
		samples[i] = []sdk.Sample{{Answers: []sdk.Answer{{Label: it.Text, Weight: 1}}}}
	}
	return samples, nil
}

// simple is a pipeline of texts that are answers.
const simple = `
variable "folder" { default = "" }
variable "key" { default = secret("WORKER_TEST_KEY") }
pipeline "p" {
  input { path = "items.tsv" }
  batch = 4
  sample "v" {
    use = "mortal"
    config {
      folder = var.folder
      key    = var.key
    }
  }
  elect "e" { use = "majority" }
}
`

const runID = "k3v9q2"

// asker is the caller of a run.
func asker(t *testing.T, s *natstest.Servers) *caller.Caller {
	t.Helper()
	return must.Get(caller.New(connect(t, s, "caller"), caller.Options{Run: runID, Servers: s.URL(), Claim: 2 * time.Second}))(t)
}

// asked is the run once it has begun.
func asked(t *testing.T, s *natstest.Servers) *bus.Run {
	t.Helper()
	conn := connect(t, s, "looker")
	return must.Get(conn.Open(t.Context(), <-conn.Watch(t.Context())))(t)
}

// texts writes the pipeline and its items.
func texts(t *testing.T, n int) (path string) {
	t.Helper()
	dir := t.TempDir()
	var items strings.Builder
	items.WriteString("id\ttext\n")
	for i := range n {
		fmt.Fprintf(&items, "q%d\ttext %d\n", i, i%7)
	}
	for name, text := range map[string]string{"p.hcl": simple, "items.tsv": items.String()} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return filepath.Join(dir, "p.hcl")
}

// answered takes the items through the pipeline, here or elsewhere.
func answered(t *testing.T, path string, o engine.Options) (all []string) {
	t.Helper()
	o.Builtin, o.State, o.Journal = builtin, filepath.Join(t.TempDir(), "state"), true
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	p := must.Get(engine.Open(ctx, path, o))(t)
	defer p.Close()
	if _, err := p.Work(ctx, func(batch []outcome.Result) error {
		for _, one := range batch {
			all = append(all, fmt.Sprintf("%+v", result.Of(one, p.Definition().Cost)))
		}
		return nil
	}, nil); err != nil {
		t.Fatal(err)
	}
	return all
}

// worksAt starts a worker, which drains when the test ends.
func worksAt(t *testing.T, s *natstest.Servers, name, state string) {
	t.Helper()
	conn := connect(t, s, name)
	o := Options{State: state}
	o.Engine.Builtin = builtin
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Work(ctx, conn, o) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// Two workers with one state folder give the answers of a run on one machine. What one of them has not is told, and
// it takes part once that is there.
func TestPipeline(t *testing.T) {
	t.Setenv("WORKER_TEST_KEY", "hush")
	path := texts(t, 300)
	here := answered(t, path, engine.Options{})
	s := natstest.Start(t, 1)
	state := filepath.Join(t.TempDir(), "state")
	for _, name := range []string{"first", "second"} {
		worksAt(t, s, name, state)
	}
	there := answered(t, path, engine.Options{Remote: asker(t, s)})
	if len(here) != 300 || strings.Join(here, "\n") != strings.Join(there, "\n") {
		t.Errorf("%d results here, %d there, or others:\n%s\n%s", len(here), len(there), here[0], there[0])
	}
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) { // what workers have is removed after their last word
		left, err := filepath.Glob(filepath.Join(state, "*", runID))
		if err != nil || len(left) == 0 {
			break
		}
		if time.Since(start) > patience {
			t.Fatalf("of the run that is over there stays %v", left)
		}
	}
}

// A worker without a secret says so with its name, and takes part once it has it.
func TestSecretIsNotHere(t *testing.T) {
	t.Setenv("WORKER_TEST_KEY", "hush")
	path := texts(t, 20)
	s := natstest.Start(t, 1)
	done := make(chan []string)
	go func() { done <- answered(t, path, engine.Options{Remote: asker(t, s)}) }()
	r := asked(t, s)
	must.Do(t, os.Unsetenv("WORKER_TEST_KEY"))
	worksAt(t, s, "poor", filepath.Join(t.TempDir(), "state"))
	state(t, r, "poor", func(w *caller.WorkerState) bool {
		return w != nil && w.State == caller.Lacks && len(w.Lacks) == 1 && strings.Contains(w.Lacks[0], "WORKER_TEST_KEY") && w.Batches == 0
	})
	t.Setenv("WORKER_TEST_KEY", "hush")
	if all := <-done; len(all) != 20 {
		t.Errorf("%d results", len(all))
	}
}

// Where the process of a stage does not start any more, the worker gives its batch back and opens the pipeline anew, as
// often as it takes: no item fails.
func TestStageIsBroken(t *testing.T) {
	t.Setenv("WORKER_TEST_KEY", "hush")
	path, deadly := texts(t, 20), t.TempDir()
	items := must.Get(os.ReadFile(filepath.Join(filepath.Dir(path), "items.tsv")))(t)
	must.Do(t, os.WriteFile(filepath.Join(filepath.Dir(path), "items.tsv"), append(items, "q20\tdie\n"...), 0o600))
	s := natstest.Start(t, 1)
	done := make(chan []string)
	go func() {
		done <- answered(t, path, engine.Options{Remote: asker(t, s), Vars: map[string]string{"folder": deadly}})
	}()
	r := asked(t, s)
	worksAt(t, s, "worker", filepath.Join(t.TempDir(), "state"))
	state(t, r, "worker", func(w *caller.WorkerState) bool {
		return w != nil && w.State == caller.Lacks && len(w.Lacks) == 1 && strings.Contains(w.Lacks[0], "it is broken")
	})
	must.Do(t, os.Remove(filepath.Join(deadly, "broken")))
	all := <-done
	if len(all) != 21 || !strings.Contains(all[20], "die") {
		t.Errorf("%d results, the last %s", len(all), all[len(all)-1])
	}
	for _, one := range all {
		if !strings.Contains(one, "Error:<nil>") {
			t.Errorf("an item failed: %s", one)
		}
	}
}

// patience bounds what a test waits for.
const patience = time.Minute

func connect(t *testing.T, s *natstest.Servers, name string) *bus.Conn {
	t.Helper()
	c := must.Get(bus.Connect(t.Context(), bus.Options{Servers: s.URL(), Name: name}))(t)
	t.Cleanup(c.Close)
	return c
}

// begin makes a run, as a caller does.
func begin(t *testing.T, c *bus.Conn, d caller.Definition) *bus.Run {
	t.Helper()
	d.Format = caller.DefinitionFormat
	text := must.Get(d.Encode())(t)
	return must.Get(c.Create(t.Context(), bus.Config{ID: d.Run, Definition: text}))(t)
}

// publish sends batches of one item each.
func publish(t *testing.T, r *bus.Run, from, to int) {
	t.Helper()
	for seq := from; seq <= to; seq++ {
		data := must.Get(packet.EncodeOrder(run.Order{Rows: []source.Row{{Line: seq * 100, Text: "t"}}}))(t)
		must.Do(t, r.Publish(t.Context(), bus.Position{Part: 1, Seq: seq}, data))
	}
}

// results reads n results, which have to be of different positions.
func results(t *testing.T, r *bus.Run, n int) map[bus.Position]bus.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	all := map[bus.Position]bus.Result{}
	for result, err := range r.Results(ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := all[result.Position]; twice {
			t.Errorf("batch %s has two results", result.Position)
		}
		if all[result.Position] = result; len(all) == n {
			return all
		}
	}
	t.Fatalf("%d of %d results", len(all), n)
	return nil
}

// state waits until the state of a worker is as it should be; nil: there is none.
func state(t *testing.T, r *bus.Run, name string, is func(*caller.WorkerState) bool) {
	t.Helper()
	var last *caller.WorkerState
	for start := time.Now(); time.Since(start) < patience; time.Sleep(10 * time.Millisecond) {
		value, _, err := r.Get(t.Context(), caller.WorkerPrefix+name)
		if err != nil {
			t.Fatal(err)
		}
		if last = nil; value != nil {
			last = &caller.WorkerState{}
			must.Do(t, json.Unmarshal(value, last))
		}
		if is(last) {
			return
		}
	}
	t.Fatalf("%s: %+v", name, last)
}

// faked starts a worker at real servers whose stages are fakes. end has it drain, and waits for that.
func faked(t *testing.T, c *bus.Conn, f *fakeRoom) (end func()) {
	t.Helper()
	f.place, f.size = &place{t: t}, 2
	o := Options{Engine: engine.Options{Log: slog.New(slog.DiscardHandler)}}
	w := o.worker(c, func(context.Context, room, *caller.Definition) (joined, error) { return &fake{f}, nil })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.run(ctx) }()
	end = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(end)
	return end
}

// A worker hears that a run is over, and does not only look from time to time.
func TestHearsTheEnd(t *testing.T) {
	s := natstest.Start(t, 1)
	r := begin(t, connect(t, s, "caller"), caller.Definition{Run: "r1"})
	there := must.Get(connect(t, s, "worker").Open(t.Context(), "r1"))(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	over := make(chan error)
	go func() { over <- (&natsRoom{Run: there, key: "worker.1", look: time.Hour}).Over(ctx) }()
	if err := r.Tell(caller.EndKey, nil); err != nil { // whoever listens looks, and finds that it is not
		t.Fatal(err)
	}
	must.Get(r.Put(t.Context(), caller.EndKey, []byte(`{}`)))(t)
	must.Do(t, r.Tell(caller.EndKey, nil))
	if err := <-over; err != nil {
		t.Fatal(err)
	}
}

// A run whose streams the servers do not know for now, though it is in the index, is not over: a worker comes back to it.
func TestStreamsAreAway(t *testing.T) {
	s := natstest.Start(t, 1)
	r := begin(t, connect(t, s, "caller"), caller.Definition{Run: "a1", Version: engine.Version()})
	js := s.JetStream(t)
	again := map[string]func(){} // by stream: how it is made again
	lose := func(names ...string) {
		for _, name := range names {
			stream := must.Get(js.Stream(t.Context(), name))(t)
			var queue *jetstream.ConsumerInfo
			for queue = range stream.ListConsumers(t.Context()).Info() {
			}
			again[name] = func() {
				must.Get(js.CreateStream(t.Context(), stream.CachedInfo().Config))(t)
				if queue != nil {
					must.Get(js.CreateConsumer(t.Context(), name, queue.Config))(t)
				}
			}
			must.Do(t, js.DeleteStream(t.Context(), name))
		}
	}
	conn := connect(t, s, "worker")
	at := natsServers{conn}
	here := must.Get(at.Room(t.Context(), "a1"))(t)
	f := &fakeRoom{id: "a1"}
	end := faked(t, conn, f)
	publish(t, r, 1, 1)
	results(t, r, 1)
	lose("racflow_a1_items", "KV_racflow_a1")
	if over, err := here.(*natsRoom).over(t.Context()); over || !errors.Is(err, bus.ErrNoRun) {
		t.Errorf("a run without streams, in the index: over %v, %v", over, err)
	}
	if there, err := at.Room(t.Context(), "a1"); there != nil || !errors.Is(err, bus.ErrNoRun) {
		t.Errorf("a run without streams, in the index: room %v, %v", there, err)
	}
	// It leaves as what it waits on ends, comes back, and finds nothing.
	for start := time.Now(); strings.Count(f.noted("close"), "close") < 2; time.Sleep(10 * time.Millisecond) {
		if time.Since(start) > patience {
			t.Fatalf("it does not come back: %s", f.noted("close"))
		}
	}
	for _, remake := range again {
		remake()
	}
	publish(t, r, 2, 2)
	results(t, r, 2)
	end()
	must.Do(t, r.Remove(t.Context()))
	if over, err := here.(*natsRoom).over(t.Context()); !over || err != nil {
		t.Errorf("a run that was removed: over %v, %v", over, err)
	}
	if there, err := at.Room(t.Context(), "a1"); there != nil || err != nil {
		t.Errorf("a run that was removed: room %v, %v", there, err)
	}
}

// A batch is answered before it is acknowledged, and counts.
func TestAnswered(t *testing.T) {
	alone(t, func(t *testing.T, p *place, r *fakeRoom) {
		r.away = 2
		for seq := range 3 {
			r.publish(seq+1, 4, 0)
		}
		_, end := p.start(1)
		time.Sleep(time.Minute)
		if got := p.noted("open", "answer", "done"); got != "open a, answer a/1, done a/1, answer a/2, done a/2, answer a/3, done a/3" {
			t.Error(got)
		}
		w := r.last()
		if w.State != caller.Working || w.Name != "here-1" || w.Batches != 3 || w.Items != 12 || w.Failed != 0 || w.Cost != .5 || w.Tokens != 3 {
			t.Errorf("%+v", w)
		}
		end()
		if got := p.noted("say", "close", "left"); got != "say joined run a of caller-1, say left run a: this worker ends, close a, left a" {
			t.Error(got)
		}
	})
}

// A worker takes part in the oldest runs, and one without work makes room for another.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t)
		for i := range 6 {
			r := p.add(fmt.Sprint(i))
			if i != 1 { // has nothing to do
				r.work = func(*fake, batch) error { time.Sleep(time.Second); return nil }
				for seq := range 200 {
					r.publish(seq, 1, 0)
				}
			}
		}
		_, end := p.start(0)
		synctest.Wait()
		if got := p.noted("open"); len(got) != len("open 0, open 1, open 2, open 3") || strings.Contains(got, "4") {
			t.Errorf("first: %s", got)
		}
		time.Sleep(3 * idle)
		if got := p.noted("say left", "open 4", "open 5", "close"); got != "say left run 1: "+errIdle.Error()+", close 1, open 4" {
			t.Errorf("then: %s", got)
		}
		close(p.rooms["0"].over)
		close(p.rooms["2"].over)
		time.Sleep(2 * time.Second) // batches that are under way end
		if got := p.noted("open 1", "open 5"); got != "open 1, open 5, open 1" && got != "open 1, open 1, open 5" {
			t.Errorf("at last: %s", got)
		}
		if got := p.noted("left"); got != "left 0, left 2" && got != "left 2, left 0" {
			t.Errorf("what is over: %s", got)
		}
		p.ids <- "0" // told again
		end()
		if got := p.noted("open 0"); got != "open 0" {
			t.Errorf("a run that is over: %s", got)
		}
	})
}

// No more batches than --jobs are under way at a time, of all runs together, and each run has its turn.
func TestJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t)
		for i := range 3 {
			r := p.add(fmt.Sprint(i))
			r.size = 100
			r.work = func(*fake, batch) error { time.Sleep(time.Second); return nil }
			for seq := range 100 {
				r.publish(seq, 1, 0)
			}
		}
		_, end := p.start(2)
		time.Sleep(30*time.Second + time.Millisecond)
		synctest.Wait()
		total := 0
		for id, r := range p.rooms {
			n := len(r.results)
			if total += n; n < 15 {
				t.Errorf("run %s has %d answers", id, n)
			}
		}
		if total != 60 {
			t.Errorf("%d answers of two at a time in 30 s", total)
		}
		end()
		for _, r := range p.rooms {
			if n := len(r.queue) + len(r.results); n != 100 {
				t.Errorf("of 100 batches %d are there", n)
			}
		}
	})
}

// Who names a number of jobs has that many under way of one run, too.
func TestJobsOfOneRun(t *testing.T) {
	for jobs, want := range map[int]int{0: 2, 1: 1, 5: 5} {
		alone(t, func(t *testing.T, p *place, r *fakeRoom) {
			r.work = func(*fake, batch) error { time.Sleep(time.Second); return nil }
			for seq := range 20 {
				r.publish(seq, 1, 0)
			}
			p.start(jobs)
			synctest.Wait()
			if got := strings.Count(p.noted("begin"), "begin"); got != want {
				t.Errorf("with %d jobs, %d batches are under way, want %d", jobs, got, want)
			}
		})
	}
}

// What a worker lacks is told, and looked for again from time to time.
func TestLacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t)
		needs := func(what ...string) error { return &shipment.LacksError{Lacks: what} }
		r := p.add("a")
		r.lacks = []error{needs("no KEY", "no plugin"), needs("no KEY"), needs("no KEY"), errors.New("broken")}
		p.start(0)
		synctest.Wait()
		if got := r.last(); got.State != caller.Lacks || strings.Join(got.Lacks, ";") != "no KEY;no plugin" {
			t.Errorf("%+v", got)
		}
		time.Sleep(lookAgain - time.Second)
		if got := p.noted("open"); got != "open a" {
			t.Errorf("too early: %s", got)
		}
		time.Sleep(2*time.Second + lookAgain)
		synctest.Wait()
		if got := p.noted("open", "say"); got != "open a, say run a: this worker takes no part in it:, say   no KEY, say   no plugin, "+
			"open a, say run a: this worker takes no part in it:, say   no KEY, open a" {
			t.Error(got)
		}
		r.publish(1, 1, 0)
		time.Sleep(lookAgain + time.Second + pauses.First)
		if got := r.last(); got.State != caller.Working || len(got.Lacks) > 0 {
			t.Errorf("%+v", got)
		}
		if got := p.noted("answer"); got != "answer a/1" {
			t.Error(got)
		}
	})
}

// A run that lacks something for this worker does not keep others from their turn, and is left when it is over.
func TestLacksIsNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t)
		for i := range together + 1 {
			r := p.add(fmt.Sprint(i))
			for range 100 {
				r.lacks = append(r.lacks, &shipment.LacksError{Lacks: []string{"no KEY"}})
			}
		}
		r := p.add("last")
		r.publish(1, 1, 0)
		p.start(0)
		synctest.Wait()
		if got := p.noted("answer"); got != "answer last/1" {
			t.Error(got)
		}
		close(p.rooms["0"].over)
		synctest.Wait()
		if got := p.noted("left"); got != "left 0" {
			t.Error(got)
		}
	})
}

// A worker of another version takes no part, whatever the servers say.
func TestVersions(t *testing.T) {
	for text, says := range map[string]string{
		`{"format":1,"run":"a","racflow":"2"}`: "the run was begun with racflow 2, and this worker is racflow 1: install the same version",
		`{"format":9,"run":"a","racflow":"2"}`: "a newer racflow (2) began the run",
		`{}`:                                   "something else than racflow wrote it",
	} {
		alone(t, func(t *testing.T, p *place, r *fakeRoom) {
			r.definition = []byte(text)
			r.publish(1, 1, 0)
			p.start(0)
			time.Sleep(5 * lookAgain)
			if got := r.last(); got.State != caller.Lacks || len(got.Lacks) != 1 || !strings.Contains(got.Lacks[0], says) {
				t.Errorf("%s: %+v", text, got)
			}
			if got := p.noted("open", "answer"); got != "" {
				t.Errorf("%s: %s", text, got)
			}
		})
	}
}

// Where stages cannot go on here, others have their turn with the batch. If they cannot either, the run hears
// of it.
func TestTrouble(t *testing.T) {
	alone(t, func(t *testing.T, p *place, r *fakeRoom) {
		r.size = 1
		broken := errors.New("the process of sample.llm does not start")
		r.trouble = func(run.Answers) error { return broken }
		r.publish(1, 2, 0)
		p.start(0)
		synctest.Wait()
		if got := r.last(); got.State != caller.Lacks || strings.Join(got.Lacks, ";") != broken.Error() {
			t.Errorf("%+v", got)
		}
		time.Sleep(time.Minute)
		if got := p.noted("open", "begin", "return", "answer", "done", "close"); got != "open a, begin a/1, return a/1, close a, "+
			"open a, begin a/1, return a/1, close a, open a, begin a/1, answer a/1, done a/1, close a, open a" {
			t.Error(got)
		}
		if got := r.last(); got.Cost != 4*.5 {
			t.Errorf("%v was spent, by the last of its pipelines alone", got.Cost)
		}
	})
}

// A batch that was given out over and over fails, and no stage sees it.
func TestPoison(t *testing.T) {
	alone(t, func(t *testing.T, p *place, r *fakeRoom) {
		r.publish(1, 2, most)
		r.publish(2, 1, most-1)
		p.start(0)
		time.Sleep(caller.WorkerEvery)
		synctest.Wait()
		if got := p.noted("fails"); strings.Count(got, "it was given to workers 10 times with others") != 2 {
			t.Error(got)
		}
		if got := r.last(); got.Items != 3 || got.Failed != 2 {
			t.Errorf("%+v", got)
		}
	})
}

// Answers that cannot travel fail at once, with the reason.
func TestCannotTravel(t *testing.T) {
	alone(t, func(t *testing.T, p *place, r *fakeRoom) {
		r.strange = true
		r.publish(1, 2, 0)
		p.start(0)
		synctest.Wait()
		if got := p.noted("answer", "return", "done"); got != "answer a/1, done a/1" {
			t.Error(got)
		}
		if got := p.noted("fails"); strings.Count(got, "the answers of its batch cannot travel: 3 results are not those of 2 rows") != 2 {
			t.Error(got)
		}
	})
}

// What cannot be read is answered, so that the caller fails with the reason: no other worker could read it.
func TestUnreadable(t *testing.T) {
	alone(t, func(t *testing.T, p *place, r *fakeRoom) {
		r.deliver(batch{Position: bus.Position{Part: 1, Seq: 1}, Data: []byte("\x09 no batch"), Deliveries: 1})
		p.start(0)
		synctest.Wait()
		got := p.noted("answer", "return", "unread", "done")
		if !strings.HasPrefix(got, "unread a/1: batch 1.1 cannot be read: ") || !strings.HasSuffix(got, ", done a/1") {
			t.Error(got)
		}
	})
}

// At the end no more are taken, and those that are under way are answered; those that take too long go to others.
func TestDrain(t *testing.T) {
	alone(t, func(t *testing.T, p *place, r *fakeRoom) {
		gate, long := make(chan struct{}), make(chan struct{})
		r.work = func(_ *fake, b batch) error {
			if b.Seq == 1 {
				<-gate
			} else {
				<-long
			}
			return nil
		}
		for seq := range 3 {
			r.publish(seq+1, 1, 0)
		}
		_, end := p.start(0)
		synctest.Wait()
		ended := make(chan struct{})
		go func() { end(); close(ended) }()
		synctest.Wait()
		if got := r.last(); got.State != caller.Draining {
			t.Errorf("%+v", got)
		}
		close(gate)
		synctest.Wait()
		if got := p.noted("begin", "answer", "return", "left"); !strings.HasSuffix(got, ", answer a/1") || strings.Contains(got, "begin a/3") {
			t.Error(got)
		}
		time.Sleep(time.Minute + time.Second)
		close(long) // stages notice that they are cut off
		<-ended
		if got := p.noted("answer", "done", "return", "close", "left"); got != "answer a/1, done a/1, return a/2, close a, left a" {
			t.Error(got)
		}
	})
}

// The batches of a run that is over are dropped.
func TestOver(t *testing.T) {
	alone(t, func(t *testing.T, p *place, r *fakeRoom) {
		gate := make(chan struct{})
		r.work = func(*fake, batch) error { <-gate; return nil }
		r.publish(1, 1, 0)
		p.start(0)
		synctest.Wait()
		close(r.over)
		synctest.Wait()
		close(gate)
		synctest.Wait()
		if got := p.noted("answer", "return", "close", "left", "say left"); got != "return a/1, say left run a: the run is over, close a, left a" {
			t.Error(got)
		}
		if got := r.last(); got.State != caller.Left || got.Calls.Total.Cost != .5 {
			t.Errorf("its last word is %+v", got)
		}
	})
}

// A batch that is another's by now is dropped, and the worker goes on.
func TestDropped(t *testing.T) {
	alone(t, func(t *testing.T, p *place, r *fakeRoom) {
		gate, dropped := make(chan struct{}), make(chan struct{})
		r.work = func(_ *fake, b batch) error {
			if b.Seq == 1 {
				<-gate
			}
			return nil
		}
		data := must.Get(packet.EncodeOrder(run.Order{Rows: []source.Row{{Line: 100}}}))(t)
		r.deliver(batch{Position: bus.Position{Part: 1, Seq: 1}, Data: data, Deliveries: 1, Lost: dropped})
		p.start(0)
		synctest.Wait()
		close(dropped)
		synctest.Wait()
		close(gate)
		synctest.Wait()
		r.publish(2, 1, 0)
		synctest.Wait()
		if got := p.noted("answer", "done", "return", "close", "say left"); got != "answer a/2, done a/2" {
			t.Error(got)
		}
	})
}

// A batch that comes again while it is under way here is answered once: this process had been stopped.
func TestComesAgain(t *testing.T) {
	alone(t, func(t *testing.T, p *place, r *fakeRoom) {
		gate := make(chan struct{})
		r.work = func(*fake, batch) error { <-gate; return nil }
		r.publish(1, 1, 0)
		r.publish(1, 1, 1)
		p.start(0)
		synctest.Wait()
		if got := p.noted("begin"); got != "begin a/1" {
			t.Error(got)
		}
		close(gate)
		synctest.Wait()
		if got := p.noted("answer", "done", "return"); got != "answer a/1, done a/1, done a/1" {
			t.Error(got)
		}
	})
}

// The rate is of the last half minute.
func TestRate(t *testing.T) {
	s, now := newStatus("n"), time.Now()
	for i, items := range []int{0, 20, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0} {
		s.count(items, 0)
		got := s.state(now.Add(time.Duration(i) * caller.WorkerEvery)).Rate
		want := 0.
		switch {
		case i > 0 && i <= 15:
			want = float64(min(i, 2)*20) / float64(2*i)
		case i == 16:
			want = 20. / 30
		}
		if got != want {
			t.Errorf("after %d s: %v items a second, want %v", 2*i, got, want)
		}
	}
}
