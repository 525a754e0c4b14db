package simulation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/output"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk/support"
)

var labels = []string{"fruit", "vehicle"}

// pipelineText is a pipeline with everything that a run may meet: knowledge, voters that learn,
// models behind a service with limits, and results that come later.
const pipelineText = `
limit "api" { concurrency = 2 }
knowledge "k" {
  source { path = "rows.tsv" }
  embed { use = "hashing" }
  store { use = "local" }
}
pipeline "p" {
  batch = 2
  journal { sync = "batch" }
  input { path = "items.tsv" }
  retrieve "near" {
    from  = knowledge.k
    top_k = 3
  }
  sample "knn" { use = "neighbours" }
  sample "words" { use = "words" }
  prompt "ask" { use = "chat" }
  sample "a" {
    use     = "openai"
    limit   = limit.api
    retries = 2
    config {
      base_url = "http://model/v1"
      model    = "a"
      probe    = false
      api_key  = secret("KEY")
    }
  }
  sample "b" {
    use     = "openai"
    limit   = limit.api
    retries = 2
    config {
      base_url = "http://model/v1"
      model    = "b"
      probe    = false
      api_key  = secret("KEY")
    }
  }
  sample "later" { use = "later" }
  elect "e" { use = "majority" }
}
`

// files makes the folder of the first machine.
func (w *world) files(text string, items int) string {
	dir := filepath.Join(w.dir, "first")
	var rows, input strings.Builder
	rows.WriteString("text\tlabel\n")
	for i := range 8 {
		fmt.Fprintf(&rows, "%s number %d\t%s\n", []string{"apple", "car"}[i%2], i, labels[i%2])
	}
	input.WriteString("id\ttext\n")
	for i := range items {
		fmt.Fprintf(&input, "q%d\t%s\n", i, kind{}.item(i))
	}
	for name, content := range map[string]string{"p.hcl": text, "rows.tsv": rows.String(), "items.tsv": input.String()} {
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)); err != nil {
			w.Fatal(err)
		}
	}
	return dir
}

// options returns the options with which a machine opens the pipeline.
func (m *machine) options() workspace.Options {
	return workspace.Options{
		Builtin: builtin, Start: m.start(stages), Dir: m.dir, State: filepath.Join(m.dir, "state"), Journal: true,
		Getenv: func(string) (string, bool) { return secret + m.name, true },
	}
}

// run sends the input through the pipeline, as the command does.
func (m *machine) run(resume string, reported func(outcome.Result)) (*workspace.Outcome, error) {
	o := m.options()
	o.Resume, o.Output = resume, filepath.Join(m.dir, "out.jsonl")
	p, err := workspace.Open(m.ctx, filepath.Join(m.dir, "p.hcl"), o)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	out, err := disk.OpenOutput(o.Output, nil, p.Reads()...)
	if err != nil {
		return nil, err
	}
	m.writes.Store(true)
	defer func() {
		m.writes.Store(false)
		out.Close()
	}()
	writer, err := output.NewWriter(out, output.JSONL, output.Options{})
	if err != nil {
		return nil, err
	}
	write := func(batch []outcome.Result) error {
		for _, one := range batch {
			if err := writer.Write(one); err != nil {
				return err
			}
		}
		if err := writer.Flush(); err != nil {
			return err
		}
		for _, one := range batch {
			reported(one)
		}
		return nil
	}
	return p.Work(m.ctx, write, func(err error) error {
		if err == nil {
			err = writer.Close()
		}
		if err == nil {
			whole, _ := os.ReadFile(out.Part())
			m.outputs = append(m.outputs, string(whole)) // from now on the file may have this content
			if m.deathAt == 0 && m.doomed && m.one(4) {
				m.deathAt = m.steps + 1 + m.draw(6)
			}
			if err = out.Commit(); err == nil {
				m.outputs = []string{string(whole)} // and now it must have it
			}
		}
		return err
	})
}

// claim opens the output as a second run of the same file does. That is refused while the first run
// has the output.
func (m *machine) claim() {
	out, err := disk.OpenOutput(filepath.Join(m.dir, "out.jsonl"), nil)
	if m.writes.Load() && !errors.As(err, new(*disk.BusyError)) && !m.died() {
		m.Errorf("two write the output: %v", err)
	}
	if err == nil {
		out.Close()
	}
}

func (m *machine) output() string {
	text, err := os.ReadFile(filepath.Join(m.dir, "out.jsonl"))
	if err != nil {
		return ""
	}
	return string(text)
}

// kind describes a run, whatever happens to it.
type kind struct {
	items int
	later bool // the results of one voter come later
}

func (k kind) text() string {
	if k.later {
		return pipelineText
	}
	return strings.Replace(pipelineText, `sample "later" { use = "later" }`, "", 1)
}

func (kind) item(n int) string { return fmt.Sprintf("an apple or a car, number %d", n) }

// undisturbed holds the outputs of runs that nothing disturbs.
var undisturbed = map[kind]string{}

// prepare fills undisturbed.
func prepare(t *testing.T) {
	for _, k := range kinds {
		if undisturbed[k] != "" {
			continue
		}
		history(t, 0, func(w *world) {
			w.service()
			m := w.machine(w.files(k.text(), k.items))
			_, err := m.run("", func(outcome.Result) {})
			m.end()
			if err != nil {
				w.Fatal(err)
			}
			undisturbed[k] = m.output()
			w.votes(undisturbed[k])
		})
	}
}

// votes checks each model's answer to each item.
func (w *world) votes(output string) {
	for line := range strings.Lines(output) {
		var r result.Result
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			w.Fatal(err)
		}
		for _, v := range r.Votes {
			if len(v.Voter) == 1 && v.Answer != says(v.Voter, r.Text, labels) {
				w.Errorf("%s: model %s is said to have said %s", r.Text, v.Voter, v.Answer)
			}
		}
	}
}

// attempt is a run that is resumed until it is complete, on one machine after the other.
type attempt struct {
	*world
	*service
	kind
	sync     string
	known    map[string]bool // items reported as answered
	again    map[string]int  // how often a paid answer may be paid once more
	outputs  []string        // possible contents: the last completed output, at first none, and later ones that may have been completed
	power    bool            // a power failure may have taken answers from the cache
	complete bool
}

// part is one machine's part of the run.
func (a *attempt) part(m *machine) {
	resume := ""
	if newest, ok := journal.RunsOf(filepath.Join(m.dir, "state")).Newest(filepath.Join(m.dir, "p.hcl"), "p"); ok {
		resume = newest.ID
	} else {
		a.anew()
	}
	m.outputs = a.outputs
	out, err := m.run(resume, func(r outcome.Result) {
		if r.Failure != nil {
			a.note("%s fails at %q: %v", m.name, r.Text, r.Failure)
		}
		if r.Failure == nil && len(r.Missing) == 0 {
			a.known[r.Text] = true
		}
	})
	if err == nil && !m.died() && m.one(3) { // what was acknowledged must not be lost now
		m.power = true
		m.die()
	}
	m.end()
	a.outputs, a.complete = m.outputs, err == nil && !out.Incomplete()
	if a.spell > 0 && a.down == 0 && a.fine > 2 && a.budget == 0 && !a.complete && !m.died() && m.drive.refused == 0 {
		a.Errorf("the service is back after %d calls, and the run does not ask it about all that it lacks", a.spell)
	}
	a.note("%s resumes %q, complete: %v, error: %v", m.name, resume, a.complete, err)
	if out != nil {
		for _, missing := range out.Missing {
			a.note("%s lacks %s: %v", m.name, missing.Stage, missing.First)
		}
	}
	if m.died() {
		m.survive()
	}
	a.lost(m)
	a.kept(m)
}

// anew records what may be paid again by a new run, which does not read the journal of a run that was
// killed when it was complete: answers that are no longer in the cache.
func (a *attempt) anew() {
	a.world.mu.Lock()
	defer a.world.mu.Unlock()
	for what := range a.paid {
		if _, text, _ := strings.Cut(what, " about "); a.power && a.known[text] {
			a.again[what]++
		}
	}
	clear(a.known)
}

// lost records what may be paid again: calls in progress at the machine's death, and answers that its
// disk had no room for or did not keep.
func (a *attempt) lost(m *machine) {
	a.world.mu.Lock()
	defer a.world.mu.Unlock()
	a.power = a.power || m.dead && m.power
	for what := range a.paid {
		_, text, _ := strings.Cut(what, " about ")
		a.again[what] += m.drive.refused
		if m.dead && (m.open[text] > 0 || m.power && (a.sync == "none" || !a.known[text])) {
			a.again[what]++
		}
	}
	for _, j := range a.jobs {
		for _, text := range j.texts {
			if m.dead && !j.polled { // its handle was not stored yet
				a.again["later about "+text]++
			}
		}
	}
}

// kept checks what is there after a part of the run.
func (a *attempt) kept(m *machine) {
	text := m.output()
	if !slices.Contains(a.outputs, text) {
		a.Errorf("the output is torn or lost:\n%s", text)
	}
	switch runs := journal.RunsOf(filepath.Join(m.dir, "state")); {
	case m.died() && m.power && a.sync == "none": // the answers may be lost
		clear(a.known)
	case m.died() && len(a.known) > 0 && a.outputs[0] == "":
		id, _ := runs.Last()
		j, err := runs.Open(id)
		if err != nil {
			a.Fatalf("the run is lost: %v", err)
		}
		if j.Known() < len(a.known) {
			a.Errorf("the journal has %d of %d results that were reported", j.Known(), len(a.known))
		}
		j.Close(nil)
	}
	_ = filepath.WalkDir(m.dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if content, _ := os.ReadFile(path); bytes.Contains(content, []byte(secret)) {
				a.Errorf("%s has the secret", path)
			}
		}
		return err
	})
}

// done checks what remains when the run is complete.
func (a *attempt) done(dir string) {
	want := undisturbed[a.kind]
	if len(a.outputs) != 1 || a.outputs[0] != want {
		a.Errorf("undisturbed and disturbed:\n%s\n%s", want, strings.Join(a.outputs, "\n"))
	}
	for what, times := range a.paid {
		if most := 1 + a.again[what]; times > most {
			a.Errorf("%s is paid %d times, at most %d are due", what, times, most)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "state", "pending", "*.json")); len(left) > 0 {
		a.Errorf("handles are left: %s", left)
	}
}

// kinds are the kinds of runs.
var kinds = []kind{{5, false}, {5, true}, {8, false}}

// A run dies, or lacks money, disk space or a service, and is resumed each time. It ends like an
// undisturbed run.
func TestRuns(t *testing.T) {
	prepare(t)
	histories(t, 900, liveRun)
}

// doom draws whether and when a machine dies: at any step, or during a change of a run's files.
func (w *world) doom(m *machine) {
	m.power, m.doomed = w.one(2), true
	switch w.draw(4) {
	case 0:
		m.deathAt = 1 + w.draw(250)
	case 1:
		m.deathOn.op = []support.Op{support.OpWrite, support.OpSync, support.OpRename, support.OpTruncate}[w.draw(4)]
		m.deathOn.file = []string{"journal.jsonl", "out.jsonl.part", ".json", ".answers"}[w.draw(4)]
		m.deathOn.n = 1 + w.draw(5)
	}
}

// liveRun is a history of a run.
func liveRun(w *world) {
	a := &attempt{world: w, service: w.service(), kind: kinds[w.draw(3)], known: map[string]bool{}, again: map[string]int{}, outputs: []string{""}}
	a.sync = []string{"none", "batch", "batch", "item"}[w.draw(4)]
	replace := []string{`sync = "batch"`, fmt.Sprintf("sync = %q", a.sync), "batch = 2", fmt.Sprint("batch = ", 1+w.draw(4))}
	if w.one(4) {
		a.budget = 2500 + w.draw(4000)
		replace = append(replace, `input {`, fmt.Sprintf("max_tokens = %d\n  input {", a.budget))
	}
	a.limit, w.slow = 2, w.one(2)
	dir := w.files(strings.NewReplacer(replace...).Replace(a.text()), a.items)
	calm := 2 + w.draw(4) // from then on nothing disturbs it
	for part := 0; !a.complete && !w.Failed(); part++ {
		if part == calm+30 {
			w.Fatal("the run does not end")
		}
		m := w.machine(dir)
		a.disturb(part < calm, a.kind)
		if part < calm {
			w.doom(m)
		}
		if part < calm && w.one(4) {
			m.drive.fill(w.draw(40), 1+w.draw(5))
		}
		if w.one(4) {
			time.AfterFunc(time.Duration(w.draw(3000))*time.Millisecond, m.claim)
		}
		a.part(m)
	}
	a.done(dir)
}
