package simulation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/sdk"
)

// learningText is a pipeline whose voters and election learn from its knowledge.
const learningText = `
knowledge "k" {
  source { path = "rows.tsv" }
  ENRICHED
  embed { use = "EMBEDDER" }
  store { use = "local" }
}
pipeline "p" {
  input { path = "items.tsv" }
  retrieve "near" {
    from  = knowledge.k
    top_k = 3
  }
  sample "knn" { use = "neighbours" }
  sample "words" { use = "words" }
  MODEL
  elect "e" {
    use = "witness"
    ASKED
  }
}
`

// modelText is a voter behind a service; it gets the candidates.
const modelText = `
  prompt "ask" { use = "chat" }
  sample "a" {
    use   = "openai"
    config {
      base_url = "http://model/v1"
      model    = "a"
      api_key  = secret("KEY")
    }
  }
`

// enrichedText adds words from a service to a text.
const enrichedText = `
  enrich "more" {
    use     = "keywords"
    workers = 1 # who comes first is not the seed's choice
    config {
      base_url = "http://model/v1"
      model    = "b"
      api_key  = secret("KEY")
    }
  }
`

// library is a knowledge whose rows change while mortal processes build it.
type library struct {
	*world
	embedder string
	many     bool // many rows
	enriched bool
	rows     []sdk.Entry // rows of the file: ID, text and label
	next     int         // number of the next row
	versions []map[string]string
	kept     int // newest version that a build has reported; -1: none

	mu    sync.Mutex
	dirs  map[string]string         // folders in which stages store what they have learnt
	known map[*link]map[string]bool // rows that a process of a stage has learnt from
}

// library makes the folder of the first machine.
func (w *world) library() (l *library, dir string) {
	l = &library{world: w, kept: -1, dirs: map[string]string{}, known: map[*link]map[string]bool{}}
	l.embedder = []string{"hashing", "alphabet"}[w.draw(2)]
	model, asked, enriched := "", "", ""
	if w.one(3) {
		model, asked = modelText, "calibrate = 4"
	}
	if w.one(6) {
		l.enriched, enriched = true, enrichedText
	}
	dir = w.files(strings.NewReplacer("EMBEDDER", l.embedder, "MODEL", model, "ASKED", asked, "ENRICHED", enriched).Replace(learningText), 1)
	rows := 6 + w.draw(6)
	if !l.enriched && w.one(30) { // more rows than a batch of the embedder
		l.many, rows = true, 300
	}
	for range rows {
		l.add()
	}
	return l, dir
}

func (l *library) add() {
	fruit := []string{"apple", "plum", "cherry", "fig", "quince"}
	cars := []string{"car", "van", "bus", "jeep", "tram"}
	text, which := "", l.draw(2)
	for range 3 {
		text += [][]string{fruit, cars}[which][l.draw(5)] + " "
	}
	l.rows = append(l.rows, sdk.Entry{ID: fmt.Sprint("r", l.next), Text: text + fmt.Sprint("n", l.next), Label: labels[which]})
	l.next++
}

// change changes the rows, and writes them. A row without a text is invalid.
func (l *library) change(m *machine) {
	for range l.draw(4) {
		at := l.draw(len(l.rows))
		switch l.draw(4) {
		case 0:
			l.add()
		case 1:
			l.rows[at].Label = labels[l.draw(2)]
		case 2:
			l.rows[at].Text = strings.TrimSpace([]string{"", l.rows[at].Text + " anew"}[min(l.draw(3), 1)])
		case 3:
			if len(l.rows) > 4 {
				l.rows = slices.Delete(l.rows, at, at+1)
			}
		}
	}
	text, version := "id\ttext\tlabel\n", map[string]string{}
	for _, r := range l.rows {
		text += fmt.Sprintf("%s\t%s\t%s\n", r.ID, r.Text, r.Label)
		if r.Text != "" {
			version[r.ID] = r.Text + " is " + r.Label
		}
	}
	if err := m.drive.put(filepath.Join(m.dir, "rows.tsv"), []byte(text)); err != nil {
		l.Fatal(err)
	}
	if len(l.versions) == 0 || !maps.Equal(version, l.versions[len(l.versions)-1]) {
		l.versions = append(l.versions, version)
	}
}

// newest returns the version in the file.
func (l *library) newest() map[string]string { return l.versions[len(l.versions)-1] }

// build updates the knowledge and lets the stages learn, in a process of its own.
func (l *library) build(ctx context.Context, m *machine, name string, use func(knowledge.BuildReport, *knowledge.Knowledge)) error {
	life, end := context.WithCancel(m.ctx)
	defer time.Sleep(time.Second) // until its stages have closed
	defer end()
	o := m.options()
	o.Start, m.sees = m.startIn(life, name, stages), l.sees
	var report knowledge.BuildReport
	o.Events.Knowledge = func(r knowledge.BuildReport) { report = r }
	o.Events.Advice = func(text string) { l.note("%s is advised: %s", m.name, text) }
	p, err := workspace.Open(ctx, filepath.Join(m.dir, "p.hcl"), o)
	if err != nil {
		return err
	}
	defer p.Close()
	r, err := p.Start(ctx)
	if err == nil && use != nil {
		use(report, r.Graph().Knowledge()[0])
	}
	return err
}

// disturbed builds on a machine that may die, with a full disk for a while, or beside another
// process. It returns the machine that continues; after a death, this is another one.
func (l *library) disturbed(m *machine) *machine {
	m.drive.holes = true
	if l.one(2) {
		if m.power = l.one(2); m.power && l.one(2) {
			m.deathSeal = 1 + l.draw(12)
		} else {
			m.deathAt = m.steps + 1 + l.draw(150)
		}
	}
	l.slow = l.many || l.one(4)
	full := l.faults("full disk")
	var beside sync.WaitGroup
	after := func(turns int, do func()) { // unless the machine dies before
		for range turns {
			if m.turn("time passes") != nil {
				return
			}
		}
		do()
	}
	if l.one(4) {
		from, to := l.draw(20), l.draw(10)
		beside.Go(func() {
			after(from, func() { m.drive.fill(0, math.MaxInt) })
			after(to, func() {})
			m.drive.fill(0, 0)
		})
	}
	if l.one(3) {
		ctx, stop := context.WithCancel(m.ctx)
		defer stop()
		stopped := false
		beside.Go(func() {
			err := l.build(ctx, m, "second ", nil)
			l.built(m, err, stopped || errors.Is(err, syscall.ENOSPC) || l.faults("full disk") > full)
		})
		if n := l.draw(60); l.one(2) {
			beside.Go(func() { after(n, func() { stopped = true; stop() }) })
		}
	}
	err := l.build(m.ctx, m, "", nil)
	beside.Wait()
	l.slow = false
	l.built(m, err, l.faults("full disk") > full)
	if m.deathAt, m.deathSeal = 0, 0; !m.died() && l.one(2) {
		m.power = true
		m.die()
	}
	if m.died() {
		m.end()
		m = l.machine(m.left)
	}
	l.look(m.dir)
	return m
}

// built records how a build ended.
func (l *library) built(m *machine, err error, mayFail bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.kept = len(l.versions) - 1
	} else if !m.died() && !mayFail || strings.Contains(err.Error(), "by another process") {
		l.Errorf("%s has not built the knowledge: %v", m.name, err)
	}
	l.note("%s has built version %d: %v", m.name, len(l.versions)-1, err)
}

// A built knowledge is complete, stays, and equals the result of an undisturbed build, whatever died
// meanwhile.
func TestKnowledge(t *testing.T) { histories(t, 300, builds) }

// Failures that once occurred, by seed.
func TestKnowledgeFound(t *testing.T) {
	found(t, map[string]uint64{
		"a model's profile is empty after a power failure":     82,
		"a build that has waited fails as another one commits": 103471,
	}, builds)
}

// builds is a history of a knowledge.
func builds(w *world) {
	w.service()
	l, dir := w.library()
	m := w.machine(dir)
	for range 1 + w.draw(3) {
		l.change(m)
		m = l.disturbed(m)
		if w.one(3) {
			l.check(m)
		}
	}
	l.check(m)
	words, votes := l.learnt()
	apart := w.machine(filepath.Join(w.dir, "apart"))
	for _, name := range []string{"p.hcl", "rows.tsv", "items.tsv"} {
		text, err := os.ReadFile(filepath.Join(m.dir, name))
		if err = errors.Join(err, os.MkdirAll(apart.dir, 0o700), os.WriteFile(filepath.Join(apart.dir, name), text, 0o600)); err != nil {
			w.Fatal(err)
		}
	}
	l.kept = -2
	l.check(apart)
	again, voted := l.learnt()
	if diff := cmp.Diff(again, words) + cmp.Diff(voted, votes, cmpopts.EquateApprox(0, 1e-5)); diff != "" {
		w.Error("stages have learnt otherwise than undisturbed: ", diff)
	}
	m.end()
	apart.end()
}
