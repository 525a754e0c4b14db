package fitted_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/run/fitted"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

var holdoutBuiltin = workspace.Serve(enginetest.Stages())

const holdoutFile = `
knowledge "k" {
  source { path = "rows.tsv" }
  embed { use = "hashing" }
  store { use = "memory" }
}
pipeline "p" {
  input { path = "items.tsv" }
  retrieve "near" { from = knowledge.k }
  sample "near" { use = "neighbours" }
  sample "centroid" { use = "prototype" }
  sample "word" { use = "words" }
  elect "e" {
    use    = "witness"
    accept = "answer in labels and answer != 'odd'"
  }
}
`

// holdoutBench is a file with an election that learns from votes.
type holdoutBench struct {
	t       *testing.T
	dir     string
	mu      sync.Mutex
	learned map[string]int // by stage: number of progress reports
}

func holdoutNewBench(t *testing.T, rows ...string) *holdoutBench {
	b := &holdoutBench{t: t, dir: t.TempDir(), learned: map[string]int{}}
	b.write("p.hcl", holdoutFile)
	b.write("rows.tsv", "id\ttext\tlabel\n"+strings.Join(rows, "\n")+"\n")
	b.write("items.tsv", "text\nred apple\n")
	return b
}

func (b *holdoutBench) write(name, content string) {
	b.t.Helper()
	must.Do(b.t, os.WriteFile(filepath.Join(b.dir, name), []byte(content), 0o600))
}

// votes answers an item, and returns the votes on each row that the election learnt from: the voters'
// best answers in the order of the file.
func (b *holdoutBench) votes(set ...string) map[string]string {
	b.t.Helper()
	for name := range b.learned {
		delete(b.learned, name)
	}
	o := workspace.Options{
		Builtin: holdoutBuiltin, State: filepath.Join(b.dir, "state"),
		Events: workspace.Events{Progress: func(s workspace.Progress) {
			b.mu.Lock()
			defer b.mu.Unlock()
			if s.Doing == "fitting" && s.Name != "k" { // it is kept in memory
				b.learned[s.Name]++
			}
		}},
	}
	for i := 0; i < len(set); i += 2 {
		o.Set = append(o.Set, pipeline.Override{Target: set[i], Value: set[i+1]})
	}
	p, err := workspace.Open(b.t.Context(), filepath.Join(b.dir, "p.hcl"), o)
	must.Do(b.t, err)
	defer p.Close()
	if _, err := p.Answer(b.t.Context(), workspace.Item{Text: "red apple"}); err != nil {
		b.t.Fatal(err)
	}
	r, err := p.Start(b.t.Context())
	must.Do(b.t, err)
	for _, s := range r.Graph().Times() {
		if s.Rows > 1 {
			b.t.Errorf("%s has worked on %d items of one", s.Stage, s.Rows)
		}
	}
	all := map[string]string{}
	kept, _ := filepath.Glob(filepath.Join(b.dir, "state", "fitted", "*", "*", enginetest.WitnessFile))
	for _, name := range kept {
		var rows []enginetest.Witnessed
		raw, err := os.ReadFile(name)
		if err == nil {
			err = json.Unmarshal(raw, &rows)
		}
		must.Do(b.t, err)
		for _, row := range rows {
			if !row.HeldOut {
				b.t.Errorf("row %s: nobody says that it was held out", row.ID)
			}
			all[row.ID] = said(row.Samples)
		}
	}
	return all
}

func said(samples []sdk.Sample) string {
	var all []string
	for _, s := range samples {
		text := s.Voter + "="
		for _, a := range s.Answers {
			if !a.Accepted {
				text += "!"
			}
			text += a.Label
			break
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

// No voter has seen the row that it votes on: otherwise it would vote for the label that only this
// row has.
func TestHeldOut(t *testing.T) {
	b := holdoutNewBench(t,
		"f1\tred apple pear plum\tfruit", "f2\tgreen apple pear plum\tfruit", "f3\tyellow apple pear plum\tfruit",
		"c1\tred car bus van\tcar", "c2\tgreen car bus van\tcar", "c3\tyellow car bus van\tcar",
		"x1\tblue apple pear plum\tcar",              // in all other rows, apples are fruit
		"o1\tfar away\todd",                          // the only one of its label
		"d1\tsame words\tcar", "d2\tsame words\tcar", // each would reveal the other's label
	)
	want := map[string]string{
		"f1": "near=fruit centroid=fruit word=fruit", "f2": "near=fruit centroid=fruit word=fruit", "f3": "near=fruit centroid=fruit word=fruit",
		"c1": "near=car centroid=car word=car", "c2": "near=car centroid=car word=car", "c3": "near=car centroid=car word=car",
		"x1": "near=fruit centroid=fruit word=fruit",
	}
	if d := cmp.Diff(want, b.votes()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if b.learned["elect.e"] == 0 || b.learned["sample.word"] < 2 {
		t.Errorf("learnt: %v; want the election, and the voter for its folds, too", b.learned)
	}
	b.votes()
	if len(b.learned) > 0 {
		t.Errorf("learnt again: %v", b.learned)
	}
	if left, _ := filepath.Glob(filepath.Join(b.dir, "state", "fitted", "*", "new-*")); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}

// A voter that learns from a sample of many rows learns once: the sample does not contain the rows
// that it votes on for the election.
func TestSampleWithoutHeldOut(t *testing.T) {
	defer fitted.Lower(150)()
	var rows []string
	for i := range fitted.Voted + 200 {
		rows = append(rows, fmt.Sprintf("r%d	only%d	%s", i, i, []string{"fruit", "car"}[i%2]))
	}
	b := holdoutNewBench(t, rows...)
	votes := b.votes()
	if len(votes) < 450 {
		t.Fatalf("votes on %d rows", len(votes))
	}
	for id, said := range votes {
		if _, label, _ := strings.Cut(said, " word="); label != "" { // no two rows share a word
			t.Fatalf("row %s: %s; the voter has learnt from it", id, said)
		}
	}
	if n := b.learned["sample.word"]; n != 1 {
		t.Errorf("the voter read %d pages of rows to learn from, and all rows are on one", n)
	}
}

// If no row can be held out, because each has its own label, no voter learns a second time.
func TestNothingHeldOut(t *testing.T) {
	b := holdoutNewBench(t, "a\tred apple\tone", "b\tgreen pear\ttwo", "c\tblue plum\tthree")
	if votes := b.votes(); len(votes) > 0 || b.learned["sample.word"] != 1 {
		t.Errorf("votes on %d rows; the voter read %d pages of rows to learn from, and all rows are on one", len(votes), b.learned["sample.word"])
	}
}

// The election learns anew only if its rows or votes change.
func TestLearntAnew(t *testing.T) {
	b := holdoutNewBench(t, "f1\tred apple pear plum\tfruit", "f2\tgreen apple pear plum\tfruit", "c1\tred car bus van\tcar", "c2\tgreen car bus van\tcar")
	b.votes()
	for _, step := range []struct {
		set  []string
		want bool
	}{
		{[]string{"near.top_k", "2"}, true},
		{[]string{"near.top_k", "2"}, false},
		{[]string{"word.weight", "3"}, true},
		{[]string{"e.flag", `"agreement < 0.5"`}, false},
		{[]string{"e.accept", `"answer in labels"`}, true},
		{[]string{"e.weights", "{ near = 2 }"}, false},
	} {
		b.votes(step.set...)
		if got := b.learned["elect.e"] > 0; got != step.want {
			t.Errorf("%s: learnt anew: %v, want %v", fmt.Sprint(step.set), got, step.want)
		}
	}
}

// Rows are searched for with their vectors as queries, if these differ from the vectors in the
// knowledge.
func TestHeldOutQueries(t *testing.T) {
	b := holdoutNewBench(t, "1\taaa\tfirst", "2\taab\tfirst", "3\tzzz\tlast", "4\tzzy\tlast")
	if got, want := b.votes("embed.k.use", "mirrored")["1"], "near=last centroid=last"; !strings.HasPrefix(got, want) {
		t.Errorf("the vote on aaa is %q, want %q", got, want)
	}
}
