package faulty_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/engine/internal/workspace"
)

const buildText = `
variable "use" { default = "faulty" }
knowledge "k" {
  source {
    path = "rows.tsv"
    id   = "id"
  }
  chunk { use = var.use }
  enrich "faulty" { use = var.use }
  embed { use = var.use }
  store { use = var.use }
}
pipeline "p" {
  retrieve "near" {
    from           = knowledge.k
    mode           = "dense"
    top_k          = 2000
    num_candidates = 2000
  }
}
`

// A build leaves out exactly the rows that a stage cannot process; later builds try them again. The
// other rows are found as if these had not existed.
func TestPoisonedRowsAreLeftOut(t *testing.T) {
	if testing.Short() && os.Getenv("RACFLOW_TEST_ALSO") != "command" {
		t.Skip("TestPoisonedRowsFailAlone has the same faults")
	}
	var faults []string
	for _, kind := range []string{"chunk", "embed", "enrich"} {
		for _, f := range ofProcess {
			reply := slices.Contains([]string{"short", "long", "empty", "other", "beyond", "again", "status", "header", "half", "vast"}, f.name)
			switch {
			case f.error == "" || f.name == "abort":
			case kind == "enrich" && reply: // these are about documents
			case testing.Short() && f.name != "kill" && f.name != "few":
			default:
				faults = append(faults, kind+":"+f.name)
			}
		}
	}
	var all, clean strings.Builder
	all.WriteString("id\ttext\tlabel\n")
	clean.WriteString("id\ttext\tlabel\n")
	bare, out := 0, 0
	poison := map[string]bool{}
	for i := range 400 {
		row := fmt.Sprintf("id%d\trow number %d", i, i)
		if i%7 == 5 && i/7 < len(faults) {
			fault := faults[i/7]
			fmt.Fprintf(&all, "%s !%s\tlabel %d\n", row, fault, i%5)
			if strings.HasPrefix(fault, "enrich:") {
				bare++
			} else {
				out++
			}
			poison[fmt.Sprint("id", i)] = true // a chunk of it may be found
			continue
		}
		fmt.Fprintf(&all, "%s\tlabel %d\n", row, i%5)
		fmt.Fprintf(&clean, "%s\tlabel %d\n", row, i%5)
	}
	for _, use := range []string{"faulty", "faulty/faulty"} {
		if testing.Short() && use == "faulty" {
			continue
		}
		t.Run(use, func(t *testing.T) {
			b := newBench(t, buildText, clean.String())
			find := func(p *workspace.Pipeline) (all []string) {
				for _, text := range []string{"row 7", "something else"} {
					found, err := p.Answer(t.Context(), workspace.Item{Text: text})
					if err != nil {
						t.Fatal(err)
					}
					for _, c := range found.Candidates {
						id, _, _ := strings.Cut(c.ID, "#")
						if !poison[id] {
							all = append(all, fmt.Sprint(c.ID, " ", c.Label, " ", *c.Dense))
						}
					}
				}
				return all
			}
			vars := map[string]string{"use": use}
			p := b.open("calm", vars, nil)
			undisturbed := find(p)
			p.Close()
			b.write("rows.tsv", all.String())
			for range 2 {
				var report knowledge.BuildReport
				p := b.open("state", vars, &report)
				got := find(p)
				p.Close()
				if report.InvalidCount != out || report.Unenriched != bare {
					t.Errorf("%d rows are left out, want %d; %d passages are bare, want %d", report.InvalidCount, out, report.Unenriched, bare)
				}
				if len(report.Invalid) != out {
					lines := fmt.Sprint(report.Invalid)
					for i, f := range faults[:out] {
						if !strings.Contains(lines, fmt.Sprintf("rows.tsv:%d: ", 7*i+7)) {
							t.Errorf("%s is not left out", f)
						}
					}
				}
				for _, r := range report.Invalid {
					if text := r.String(); !strings.Contains(text, "chunk.k: ") && !strings.Contains(text, "embed.k: ") {
						t.Errorf("the stage is not named: %s", text)
					}
				}
				if !slices.Equal(got, undisturbed) {
					t.Errorf("undisturbed and disturbed:\n%s", cmp.Diff(undisturbed, got))
				}
			}
			b.leavesNothing()
		})
	}
}

// If a stage hangs on a row of a knowledge, this row is left out, or unenriched, and no other row.
func TestRowsOfAKnowledgeThatHang(t *testing.T) {
	hangs := map[int]string{21: "chunk:hang", 84: "embed:deaf", 120: "enrich:hang"}
	if testing.Short() {
		hangs = map[int]string{84: "embed:deaf"}
	}
	var rows strings.Builder
	rows.WriteString("id\ttext\tlabel\n")
	for i := range 200 {
		fmt.Fprintf(&rows, "id%d\trow number %d", i, i)
		if fault := hangs[i]; fault != "" {
			fmt.Fprint(&rows, " !", fault)
		}
		fmt.Fprintf(&rows, "\tlabel %d\n", i%5)
	}
	text := regexp.MustCompile(`\{ use = var.use \}`).ReplaceAllString(buildText, "{\n    use     = var.use\n    timeout = \"8s\"\n  }")
	b := newBench(t, text, rows.String())
	var report knowledge.BuildReport
	p := b.open("state", map[string]string{"use": "faulty/faulty"}, &report)
	b.answers(p, []string{"row 7"})
	p.Close()
	var failed []string
	for _, r := range report.Invalid {
		failed = append(failed, r.String())
	}
	if report.Unenriched > 0 {
		failed = append(failed, report.FirstUnenriched.String())
	}
	for at, fault := range hangs {
		want := fmt.Sprintf("rows.tsv:%d: ", at+2)
		if !slices.ContainsFunc(failed, func(f string) bool { return strings.Contains(f, want) && strings.Contains(f, "no answer within 4s") }) {
			t.Errorf("%s is not blamed: %q", fault, failed)
		}
	}
	if n := report.InvalidCount + report.Unenriched; n != len(hangs) {
		t.Errorf("%d rows failed, want %d: %q", n, len(hangs), failed)
	}
	b.leavesNothing()
}
