package faulty_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/workspace"
)

const knowledgeText = `
variable "use"      { default = "faulty" }
variable "harmless" { default = false }
variable "nap"      { default = "0" }
knowledge "k" {
  source { path = "rows.tsv" }
  embed  { use = "faulty" }
  store  { use = "local" }
}
`

const pipelineText = knowledgeText + `
pipeline "p" {
  retrieve "near" { from = knowledge.k }
  rerank "faulty" {
    use = var.use
    config { harmless = var.harmless }
  }
  prompt "faulty" {
    use = var.use
    config {
      harmless = var.harmless
      every    = 100
    }
  }
  sample "faulty" {
    use    = var.use
    memory = "1GiB"
    config {
      harmless = var.harmless
      token    = "hush-hush"
      nap      = var.nap
    }
  }
  elect "faulty" {
    use = var.use
    config {
      harmless = var.harmless
      slow     = "200ms"
    }
  }
}
`

func rowsText(n int) string {
	var rows strings.Builder
	rows.WriteString("text\tlabel\n")
	for i := range n {
		fmt.Fprintf(&rows, "row number %d\tlabel %d\n", i, i%5)
	}
	return rows.String()
}

// fault is a fault that a row requests, and the resulting error; empty: no error.
type fault struct{ name, error string }

const (
	ended     = "plugin faulty 1.2.3: the stage's process ended while it worked on this, "
	malformed = "plugin faulty 1.2.3 sent a reply that is malformed: "
	status    = "plugin faulty 1.2.3: the plugin answered /racflow.stage.v2.Stage/"
)

// ofProcess are the faults of every kind of stage.
var ofProcess = []fault{
	{"exit", ended + "|exit status 3; its last words:\n|no more cheese"}, {"kill", ended + "|killed by signal 9 (SIGKILL)"},
	{"abort", ended + "|exit status 2, SIGABRT: abort at "}, {"aside", ended + "|exit status 2, panic: out of cheese, aside, with |faulty/fault.go:|its last words:\n|faulty.aside("},
	{"header", ended + "|exit status 3"}, {"half", ended + "|exit status 3"}, {"vast", "the reply is larger than the 64 MiB of a message"},
	{"panic", "panic in the plugin: out of cheese; its log has the whole stack:\n|faulty/fault.go:"}, {"fail", "nothing to say to this"},
	{"flood", ""}, {"few", "the stage returned 0 results for 1 rows"}, {"many", "the stage returned 2 results for 1 rows"},
	{"short", malformed}, {"long", malformed}, {"empty", malformed}, {"other", malformed}, {"beyond", malformed + "error for row 1 of 1"},
	{"again", "no, and no"}, {"status", status + "|Internal (out of order)"},
}

var ofKind = map[string][]fault{
	"rerank": {{"nan", "returned score NaN for candidate 1"}, {"inf", "returned score +Inf"}, {"huge", "returned score +Inf"}, {"range", malformed}, {"twice", malformed + "|stands twice"}},
	"prompt": {},
	"sample": {
		{"nan", "returned weight NaN for answer 2"}, {"inf", "returned weight +Inf"}, {"huge", "returned weight 1e+308"}, {"negative", "returned weight -7"},
		{"absent", status + "|Unavailable (come back later)"}, {"cancelled", status + "|Canceled (not today)"}, {"memory", ended + "|1.0 GiB"}, {"fork", ended + "|killed by signal 9"},
	},
	"elect": {{"nan", "returned agreement NaN"}, {"inf", "returned agreement +Inf"}, {"huge", "returned agreement 1e+308"}, {"negative", "returned agreement -7"}},
}

// poisoned returns texts, some of which request a fault of a stage kind, and the expected errors by
// position. Some faults are close together. A third-party stage also starts processes that leave its
// group; racflow does not watch such processes of built-in stages.
func poisoned(n int, short, third bool) (texts []string, wanted map[int]string) {
	random := rand.New(rand.NewPCG(18, 18)) //nolint:gosec // the same each time
	wanted = map[int]string{}
	for i := range n {
		texts = append(texts, fmt.Sprint("row ", i))
	}
	at := 0
	for _, kind := range []string{"rerank", "prompt", "sample", "elect"} {
		all := append(ofProcess[:len(ofProcess):len(ofProcess)], ofKind[kind]...)
		if third && kind == "sample" {
			all = append(all, fault{"setsid", ended + "|killed by signal 9"})
		}
		for i, f := range all {
			if (short || !third) && i%3 != len(kind)%3 && f.name != "setsid" { // both take the same code path
				continue
			}
			at += 1 + random.IntN(n/50)
			texts[at] += " !" + kind + ":" + f.name
			wanted[at] = f.error
			if f.error != "" {
				if wanted[at] = kind + ".faulty: |" + f.error; third {
					wanted[at] += "|plugin faulty 1.2.3"
				} else {
					wanted[at] = strings.ReplaceAll(wanted[at], "plugin faulty 1.2.3", "plugin racflow "+workspace.Version())
				}
			}
		}
	}
	return texts, wanted
}

// check compares results with those of an undisturbed run.
func check(t *testing.T, texts, undisturbed, got []string, wanted map[int]string) {
	t.Helper()
	for i, text := range texts {
		want := wanted[i]
		if want == "" {
			if got[i] != undisturbed[i] {
				t.Errorf("%s: got\n%s\nundisturbed\n%s", text, got[i], undisturbed[i])
			}
			continue
		}
		if !strings.HasPrefix(got[i], "!") || strings.Contains(got[i], "hush") {
			t.Errorf("%s: got %s", text, got[i])
		}
		for part := range strings.SplitSeq(want, "|") {
			if !strings.Contains(got[i], part) {
				t.Errorf("%s: got %s, want %q", text, got[i], part)
			}
		}
	}
}

// Only the items that a stage cannot process fail, whatever the stage does with them. This holds for
// built-in and third-party stages. All other items of thousands have the same results as in an
// undisturbed run, byte for byte. No process and no file remains.
func TestPoisonedRowsFailAlone(t *testing.T) {
	items, uses := 5000, []string{"faulty", "faulty/faulty"}
	if testing.Short() {
		items, uses = 500, uses[1:]
	}
	b := newBench(t, pipelineText, rowsText(40))
	for _, use := range uses {
		t.Run(use, func(t *testing.T) {
			b := bench{t, b.dir, b.plugins}
			texts, wanted := poisoned(items, testing.Short(), strings.Contains(use, "/"))
			calm := b.open("calm", map[string]string{"use": use, "harmless": "true"}, nil)
			undisturbed := b.answers(calm, texts)
			calm.Close()
			p := b.open("state", map[string]string{"use": use, "nap": nap}, nil)
			got := b.answers(p, texts)
			p.Close()
			check(t, texts, undisturbed, got, wanted)
			b.leavesNothing()
		})
	}
}

// If a stage hangs on a row, this row fails alone and within the stage's timeout. The stage may heed
// the end of its time, ignore it, or have stopped. The other 199 rows are answered.
func TestRowsThatHangFailAlone(t *testing.T) {
	limited := strings.ReplaceAll(pipelineText, "= var.use", "= var.use\n    timeout = \"8s\"")
	b := newBench(t, limited, rowsText(40))
	texts := make([]string, 200)
	for i := range texts {
		texts[i] = fmt.Sprint("row ", i)
	}
	calm := b.open("calm", map[string]string{"use": "faulty", "harmless": "true"}, nil)
	undisturbed := b.answers(calm, texts)
	calm.Close()
	for n, c := range []struct{ use, fault, by string }{
		{"faulty/faulty", "sample:hang", "|plugin faulty 1.2.3: no"}, {"faulty", "rerank:hang", ""},
		{"faulty/faulty", "prompt:deaf", "|plugin faulty 1.2.3: no"}, {"faulty/faulty", "elect:stop", "|plugin faulty 1.2.3: no"},
	} {
		t.Run(c.fault, func(t *testing.T) {
			if testing.Short() && n > 0 {
				t.Skip("the way of all is the same")
			}
			t.Parallel()
			b := bench{t, b.dir, b.plugins}
			kind, _, _ := strings.Cut(c.fault, ":")
			p := b.open("state of "+kind, map[string]string{"use": c.use}, nil)
			texts := slices.Clone(texts)
			texts[137] += " !" + c.fault
			check(t, texts, undisturbed, b.answers(p, texts), map[int]string{137: kind + ".faulty: |no answer within 4s, its share of timeout = \"8s\"" + c.by})
		})
	}
}
