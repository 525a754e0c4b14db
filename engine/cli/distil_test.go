package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/measure/expect"
	"github.com/racflow/racflow/engine/internal/run/result"
	"github.com/racflow/racflow/engine/internal/show/terminal"
)

// distilFile has a teacher, in which recorded language models vote beside the
// statistical voters, and a student, in which linear answers alone.
const distilFile = `
variable "embedder" {}
variable "rows" { type = path }
variable "answers" { type = path }
variable "election" { default = "soft" }

knowledge "k" {
  source { path = var.rows }
  embed { use = var.embedder }
  store { use = "local" }
}
pipeline "student" {
  retrieve "near" { from = knowledge.k }
  sample "linear" { use = "linear" }
  elect "e" { use = "soft" }
}
pipeline "teacher" {
  retrieve "near" { from = knowledge.k }
  sample "neighbours" { use = "neighbours" }
  sample "prototype" { use = "prototype" }
  sample "linear" { use = "linear" }
%s  elect "e" {
    use    = var.election
    accept = "answer in labels"
  }
}
`

// BenchmarkDistil shows what a student learns from recorded answers of language models: it answers each of five folds
// after learning from the knowledge and from what the teacher answered surely of the other folds. What tokens the answers took
// was not recorded.
func BenchmarkDistil(b *testing.B) {
	for b.Loop() {
		distilled(b, sharedData(b, "votes"))
	}
}

func distilled(t *testing.B, data string) {
	d := distilling{t: t, dir: t.TempDir(), answers: filepath.Join(data, "votes.tsv")}
	d.flags = withRememberedMiniLM(t, d.dir)
	train, rows := d.table(filepath.Join(data, "train.tsv")), d.table(filepath.Join(data, "rows.tsv"))
	truth := map[string]string{}
	for _, row := range rows {
		truth[row[0]] = row[2]
	}
	var models []string
	for _, answer := range d.table(d.answers) {
		if !slices.Contains(models, answer[1]) {
			models = append(models, answer[1])
		}
	}
	alone := d.student(train, rows)
	t.Logf("linear without a teacher, on %d rows: %s", len(train), shown(alone))
	for _, teacher := range []struct {
		election, confident string
		models              []string
	}{
		{"soft", "0.5", []string{"qwen3_30b_fs5"}},
		{"soft", "0.9", []string{"qwen3_30b_fs5"}},
		{"learned", "0.9", models},
	} {
		name := fmt.Sprintf("%s, %s, %s", teacher.election, terminal.Plural(len(teacher.models), "model"), teacher.confident)
		answered, exported := d.teacher(teacher.election, teacher.models, teacher.confident, train, rows)
		correct := 0
		for _, row := range exported {
			if truth[row[0]] == row[2] {
				correct++
			}
		}
		answers, against := map[string]bool{}, eval.Paired{}
		for fold := range 5 {
			held, learnt := [][]string{}, slices.Clone(train)
			for i, row := range rows {
				if i%5 == fold {
					held = append(held, row)
				}
			}
			for _, row := range exported {
				if !slices.ContainsFunc(held, func(h []string) bool { return h[0] == row[0] }) {
					learnt = append(learnt, row)
				}
			}
			for id, right := range d.student(learnt, held) {
				answers[id] = right
				against.Add(alone[id], right)
			}
		}
		t.Logf("%s: teacher %s, %d calls; %d rows exported, right %s; student %s, %+.3f (%+.3f to %+.3f) against no teacher", name, shown(answered),
			len(teacher.models)*len(rows), len(exported), share(correct, len(exported)), shown(answers), against.Difference(), against.Interval().Low, against.Interval().High)
		t.ReportMetric(float64(rightOnes(answers))/float64(len(rows)), "accuracy:"+strings.ReplaceAll(name, " ", ""))
	}
}

type distilling struct {
	t       testing.TB
	dir     string
	answers string
	flags   []string
}

// table reads the rows of a TSV file.
func (d *distilling) table(path string) (all [][]string) {
	d.t.Helper()
	for _, line := range strings.Split(strings.TrimSpace(readFile(d.t, "", path)), "\n")[1:] {
		all = append(all, strings.Split(line, "\t"))
	}
	return all
}

func (d *distilling) write(name string, rows [][]string) {
	text := "id\ttext\tlabel\n"
	for _, row := range rows {
		text += strings.Join(row, "\t") + "\n"
	}
	write(d.t, d.dir, name, text)
}

// answer takes items through a pipeline over a knowledge, and says which were answered
// right.
func (d *distilling) answer(pipeline string, known, items [][]string, args ...string) map[string]bool {
	d.t.Helper()
	d.write("known.tsv", known)
	d.write("items.tsv", items)
	args = append(args, "-var", "rows="+filepath.Join(d.dir, "known.tsv"), "-var", "answers="+d.answers, "--pipeline", pipeline, "--input", "items.tsv", "p.hcl")
	right := map[string]bool{}
	out, _ := good(d.t, racflow(d.t, d.dir, slices.Concat([]string{"run"}, d.flags, args)...))
	for _, r := range jsonLines[result.Result](d.t, out) {
		right[r.ID] = string(r.Answer) == r.Expected
	}
	return right
}

func (d *distilling) student(known, items [][]string) map[string]bool {
	d.t.Helper()
	write(d.t, d.dir, "p.hcl", rememberedReach+fmt.Sprintf(distilFile, ""))
	return d.answer("student", known, items)
}

// teacher answers items, and exports what it is sure of.
func (d *distilling) teacher(election string, models []string, confident string, known, items [][]string) (right map[string]bool, exported [][]string) {
	d.t.Helper()
	voters := ""
	for _, model := range models {
		voters += fmt.Sprintf("  sample %q {\n    use = \"recorded\"\n    config { path = var.answers }\n  }\n", model)
	}
	write(d.t, d.dir, "p.hcl", rememberedReach+fmt.Sprintf(distilFile, voters))
	right = d.answer("teacher", known, items, "-var", "election="+election)
	rows, _ := good(d.t, racflow(d.t, d.dir, "export", "newest", "--state", sharedState(), "--confidence", confident))
	for _, r := range jsonLines[expect.AnswerRow](d.t, rows) {
		exported = append(exported, []string{r.ID, r.Text, r.Label})
	}
	return right, exported
}

func rightOnes(answers map[string]bool) (n int) {
	for _, right := range answers {
		if right {
			n++
		}
	}
	return n
}

// shown is an accuracy with its interval.
func shown(answers map[string]bool) string { return share(rightOnes(answers), len(answers)) }

func share(right, of int) string {
	i := eval.Wilson(right, of)
	return fmt.Sprintf("%.3f (%.3f to %.3f)", float64(right)/float64(of), i.Low, i.High)
}
