package cli

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/source"
)

const nextFile = rememberedReach + `
variable "embedder" { default = "hashing" }
variable "decisions" { default = "reviewed.jsonl" }
knowledge "k" {
  source { path = "rows.jsonl" }
  source {
    path     = var.decisions
    reviewed = true
  }
  embed { use = var.embedder }
}
pipeline "p" {
  input { path = "pool.tsv" }
  retrieve "near" {}
  sample "neighbours" { use = "neighbours" }
  sample "prototype" { use = "prototype" }
  sample "linear" { use = "linear" }
  elect "e" {}
}
`

// labelledText is a row of a data set.
type labelledText struct {
	Text  string `json:"text"`
	Label string `json:"label"`
}

// labelling is a data set that people label a few rows at a time.
type labelling struct {
	t             *testing.T
	dir           string
	args          []string
	pool          []labelledText
	known, random []labelledText // random picks take from random in turn
	gold          map[string]string
}

// newLabelling splits a data set into labelled rows, unlabelled texts, and rows to measure on. The
// labelled rows are drawn at random; with labelled = 0, they are one row of every second label.
func newLabelling(t *testing.T, set string, labelled int, seed uint64) *labelling {
	l := &labelling{t: t, dir: t.TempDir(), gold: map[string]string{}}
	read := func(name string) (all []labelledText) {
		for line := range strings.Lines(readFile(t, "", sharedData(t, set+"/"+name+".tsv"))) {
			cells := strings.Split(strings.TrimRight(line, "\r\n"), "\t")
			all = append(all, labelledText{cells[0], cells[1]})
		}
		return all[1:]
	}
	random := rand.New(rand.NewPCG(seed, 1))
	train, test := read("train"), read("test_public")
	random.Shuffle(len(train), func(i, j int) { train[i], train[j] = train[j], train[i] })
	var rest []labelledText
	first := map[string]bool{}
	for i, r := range train {
		known := i < labelled
		if labelled == 0 && !first[r.Label] {
			first[r.Label] = true
			known = len(first)%2 == 1
		}
		if known {
			l.known = append(l.known, r)
		} else {
			rest = append(rest, r)
		}
	}
	l.pool = rest[:2000]
	test = slices.Concat(test, rest[2000:])
	l.args = append(withRememberedMiniLM(t, l.dir), "p.hcl")
	write(t, l.dir, "p.hcl", nextFile)
	l.rows("rows.jsonl", l.known)
	l.table("pool.tsv", l.pool, false)
	l.table("test.tsv", test[:min(len(test), 1000)], true)
	for _, r := range l.pool {
		l.gold[source.Normal(r.Text)] = r.Label
	}
	l.random = slices.Clone(l.pool)
	random.Shuffle(len(l.random), func(i, j int) { l.random[i], l.random[j] = l.random[j], l.random[i] })
	return l
}

func (l *labelling) rows(name string, all []labelledText) {
	l.t.Helper()
	var text strings.Builder
	for _, r := range all {
		line, err := json.Marshal(r)
		if err != nil {
			l.t.Fatal(err)
		}
		text.Write(append(line, '\n'))
	}
	write(l.t, l.dir, name, text.String())
}

func (l *labelling) table(name string, all []labelledText, labels bool) {
	l.t.Helper()
	text := "text\tlabel\n"
	for _, r := range all {
		if !labels {
			r.Label = ""
		}
		text += r.Text + "\t" + r.Label + "\n"
	}
	write(l.t, l.dir, name, text)
}

// accuracy measures the accuracy of the pipeline with a file of decisions.
func (l *labelling) accuracy(decisions string) float64 {
	l.t.Helper()
	out, _ := good(l.t, racflow(l.t, l.dir, slices.Concat([]string{"eval", "--json", "--input", "test.tsv", "-var", "decisions=" + decisions}, l.args)...))
	return jsonLines[eval.Report](l.t, out)[0].Accuracy
}

// next decides n texts that review picks.
func (l *labelling) next(n int) {
	l.t.Helper()
	must(l.t, racflow(l.t, l.dir, append([]string{"run", "--output", "out.jsonl", "--overwrite"}, l.args...)...))
	r := startReview(l.t, l.dir, slices.Concat([]string{"newest", "--next", fmt.Sprint(n)}, l.args[:len(l.args)-3])...)
	for _, c := range r.cases() {
		request, err := json.Marshal(map[string]any{"case": c.ID, "label": l.gold[source.Normal(c.Text)], "new": true, "reviewer": "Ada", "page": "1"})
		if err != nil {
			l.t.Fatal(err)
		}
		r.call("/api/decide", string(request), &struct{}{})
	}
	r.finish()
}

// TestReviewNextSavesLabels measures how many labels review --next needs to match labels of randomly
// drawn texts. It takes an hour, so it runs only if RACFLOW_TEST_QUALITY is set.
func TestReviewNextSavesLabels(t *testing.T) {
	if os.Getenv("RACFLOW_TEST_QUALITY") == "" {
		t.Skip("RACFLOW_TEST_QUALITY is not set")
	}
	const step, steps, seeds = 50, 8, 3
	for _, set := range []struct {
		name     string
		labelled int
	}{{"hwu64", 0}, {"clinc150", 0}, {"trec", 100}} {
		t.Run(set.name, func(t *testing.T) {
			var picked, random [seeds][steps + 1]float64
			var mean [2][steps + 1]float64
			for seed := range uint64(seeds) {
				l := newLabelling(t, set.name, set.labelled, seed)
				for i := range steps + 1 {
					l.rows("random.jsonl", l.random[:i*step])
					random[seed][i] = l.accuracy("random.jsonl")
					if picked[seed][i] = random[seed][i]; i > 0 {
						l.next(step)
						picked[seed][i] = l.accuracy("reviewed.jsonl")
					}
					mean[0][i] += picked[seed][i] / seeds
					mean[1][i] += random[seed][i] / seeds
					t.Logf("seed %d, %d labels: %.3f picked, %.3f at random", seed, i*step, picked[seed][i], random[seed][i])
				}
			}
			for _, at := range []int{steps / 2, steps} {
				var need [seeds]float64
				for seed := range need {
					need[seed] = reaches(picked[seed][:], mean[1][at]) * step
				}
				all := reaches(mean[0][:], mean[1][at]) * step
				t.Logf("as good as %d at random (%.3f): %.0f labels; by seed %.0f", at*step, mean[1][at], all, need)
				if all >= float64(at*step) {
					t.Errorf("nothing is saved at %d labels", at*step)
				}
			}
			t.Logf("labels       0 to %d by %d\npicked    %.3f\nat random %.3f", steps*step, step, mean[0], mean[1])
		})
	}
}

// reaches returns the number of steps until a curve reaches a height; all steps if it does not.
func reaches(curve []float64, height float64) float64 {
	for i, y := range curve {
		if y < height {
			continue
		}
		if i == 0 {
			return 0
		}
		return float64(i) - (y-height)/(y-curve[i-1])
	}
	return float64(len(curve) - 1)
}
