package simulation

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/internal/knowledge/reviewed"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/show/review"
	"github.com/racflow/racflow/sdk"
)

// reviews holds the decisions of several people about the same items, in one file.
type reviews struct {
	*world
	cases []review.Case
	odd   string // a line that is no decision

	mu    sync.Mutex
	clock int
	all   []*decision
}

// decision is what somebody has decided, or tried to decide.
type decision struct {
	about      string // ID of the row in the file
	label      string // empty: the row is dropped
	by         string // unique to this decision
	began, end int    // by the clock; the end is math.MaxInt until it is acknowledged
}

// now is the next time of the clock.
func (r *reviews) now() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clock++
	return r.clock
}

// pause lets others work for a moment.
func (r *reviews) pause() { time.Sleep(time.Duration(r.draw(int(20 * time.Millisecond)))) }

// begin records that somebody decides.
func (r *reviews) begin(c review.Case, who string) *decision {
	d := &decision{about: reviewed.ID(c.Text, c.Row), label: labels[r.draw(2)], began: r.now(), end: math.MaxInt}
	if c.Row != "" && r.one(2) {
		d.label = ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	d.by = fmt.Sprint(who, " ", len(r.all))
	r.all = append(r.all, d)
	return d
}

// decides lets a person decide some cases on a machine, on a page of their own or with a program that
// does not ask anybody.
func (r *reviews) decides(m *machine, who string) {
	path := filepath.Join(m.dir, "reviewed.jsonl")
	if m.turn(who+" comes") != nil {
		return
	}
	page := review.NewQueue(path, "", r.cases, labels, sdk.LabelForm{})
	for range 1 + r.draw(3) {
		if m.turn(who+" looks") != nil {
			return
		}
		r.pause() // so that nobody waits for the file at the same moment as another
		c := page.Cases()[r.draw(len(r.cases))]
		seen, _ := page.Decisions()
		at := r.now()
		var d *decision
		var err error
		if r.one(2) {
			d = r.begin(c, who)
			row := reviewed.Row{Text: c.Text, Label: d.label, Reviewer: d.by, Replaces: c.Row}
			err = reviewed.Write(path, func() error {
				r.pause()
				return m.turn(who + " writes")
			}, []reviewed.Row{row})
		} else {
			r.pause()
			d = r.begin(c, who)
			ask := review.Request{Case: c.ID, Label: d.label, Drop: d.label == "", Reviewer: d.by, Page: who}
			if before := seen[c.ID]; before != nil {
				ask.Version = before.Version
			}
			if _, err = page.Decide(ask); err == nil {
				r.seen(d, at)
			}
		}
		r.note("%s on %s has decided about %s: %v", d.by, m.name, d.about, err)
		if conflict := new(review.ConflictError); err == nil {
			end := r.now()
			r.mu.Lock()
			d.end = end
			r.mu.Unlock()
		} else if !errors.As(err, &conflict) && !m.died() && r.faults("full disk") == 0 {
			r.Errorf("%s cannot decide: %v", who, err)
		}
	}
}

// seen checks that a decision that a page has accepted does not replace one that the person has not
// seen.
func (r *reviews) seen(d *decision, at int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, other := range r.all {
		if other.about == d.about && other.began > at && other.end < d.began {
			r.Errorf("%s has decided over %s, which was not shown", d.by, other.by)
		}
	}
}

// check checks the file. All lines are complete. Each is the newest decision about its subject, or
// one that was in progress. No decided subject is missing. It returns the decisions.
func (r *reviews) check(dir string) map[string]*decision {
	content, _ := os.ReadFile(filepath.Join(dir, "reviewed.jsonl"))
	rows, errs := reviewed.Read(filepath.Join(dir, "reviewed.jsonl"), sdk.LabelForm{})
	if r.odd != "" && len(errs) == 1 && bytes.HasPrefix(content, []byte(r.odd)) {
		errs = nil
	}
	lines := bytes.Count(bytes.TrimPrefix(content, []byte(r.odd)), []byte("\n"))
	if len(errs) > 0 || lines != len(rows) {
		r.Errorf("%d lines have %d decisions, and %v:\n%s", lines, len(rows), errs, content)
	}
	found := map[string]*decision{}
	for _, row := range rows {
		for _, d := range r.all {
			if d.by == row.Reviewer && d.about == row.ID && d.label == row.Label {
				found[row.ID] = d
			}
		}
		if found[row.ID] == nil {
			r.Errorf("nobody has decided %+v", row)
		}
	}
	for _, d := range r.all {
		if now := found[d.about]; d.end < math.MaxInt && (now == nil || now.end < d.began) {
			r.Errorf("the decision of %s about %s is lost: the file has %+v", d.by, d.about, now)
		}
	}
	return found
}

// answers checks that a run answers decided items by the decision, and asks no model about them.
func (r *reviews) answers(m *machine, decided map[string]*decision) {
	s := asked.Load()
	var results []outcome.Result
	if _, err := m.run("", func(one outcome.Result) { results = append(results, one) }); err != nil || len(results) == 0 {
		r.Fatal(err, len(results))
	}
	for _, one := range results {
		d := decided[reviewed.ID(one.Text, "")]
		switch {
		case d == nil && one.Decided == nil:
		case d == nil || one.Decided == nil || one.Answer != d.label || one.Decided.By != d.by:
			r.Errorf("item %s is answered %q, decided %v, and the decision is %+v", one.ID, one.Answer, one.Decided, d)
		}
		if d != nil && s.paid["a about "+one.Text] > 0 {
			r.Errorf("a model was paid for item %s, which a person has decided", one.ID)
		}
	}
}

// Decisions of people are in the file, complete and once, whoever else decides and whatever dies.
func TestReviews(t *testing.T) {
	text := strings.Replace(kind{}.text(), `source { path = "rows.tsv" }`, `source { path = "rows.tsv" }
  source {
    path     = "reviewed.jsonl"
    reviewed = true
  }`, 1)
	histories(t, 300, func(w *world) {
		w.service()
		r := &reviews{world: w}
		dir := w.files(text, 4)
		for i := range 4 {
			r.cases = append(r.cases, review.Case{Text: fmt.Sprintf("an apple or a car, number %d", i), Items: []string{fmt.Sprint("q", i)}})
		}
		r.cases = append(r.cases, review.Case{Text: "a row", Row: "r1"}, review.Case{Text: "another row", Row: "r2"})
		m := w.machine(dir)
		if w.one(3) {
			r.odd = "who has decided this?\n\n"
			if err := m.drive.put(filepath.Join(dir, "reviewed.jsonl"), []byte(r.odd)); err != nil {
				w.Fatal(err)
			}
		}
		for range 1 + w.draw(4) {
			m.drive.holes = true
			if m.power = w.one(2); w.one(4) {
				m.deathAt = m.steps + 1 + w.draw(60)
			} else if w.one(2) {
				m.deathSeal, m.power = 1+w.draw(20), true
			}
			var people sync.WaitGroup
			if w.one(6) {
				people.Go(func() {
					if m.turn("others write much") != nil {
						return
					}
					for _, writes := range []int{math.MaxInt, 0} {
						r.pause()
						m.drive.fill(0, writes)
					}
				})
			}
			for _, who := range []string{"Ada", "Ben", "Cleo"}[:1+w.draw(3)] {
				people.Go(func() { r.decides(m, who) })
			}
			people.Wait()
			if m.deathAt, m.deathSeal = 0, 0; !m.died() && w.one(2) {
				m.power = true
				m.die()
			}
			if m.died() {
				m.end()
				m = w.machine(m.left)
			}
			r.check(m.dir)
		}
		if w.one(4) {
			r.answers(m, r.check(m.dir))
		}
		m.end()
	})
}
