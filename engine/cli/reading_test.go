package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// TestAnswersWithMarkup runs a model that writes its labels in bold: they count, and the votes say
// how they were read. If labels must be exact, none counts, and a run and an evaluation warn of that.
func TestAnswersWithMarkup(t *testing.T) {
	server := modelserver.Serve(t, modelserver.Options{Answer: func(modelserver.Ask, int) string { return "**card_lost**" }})
	dir := t.TempDir()
	write(t, dir, "rows.tsv", "text\tlabel\nmy card is gone\tcard_lost\nnew code\tpin\n")
	write(t, dir, "p.hcl", `
		variable "read" { default = "plain" }
		knowledge "k" {
			source { path = "rows.tsv" }
			embed { use = "hashing" }
			store { use = "local" }
		}
		pipeline "p" {
			input { path = "rows.tsv" }
			retrieve "near" { from = knowledge.k }
			prompt "shots" { use = "completion" }
			sample "llm" {
				use    = "openai"
				n      = 3
				accept = "answer in labels"
				config {
					model    = "m"
					base_url = "`+server.URL+`"
					read     = var.read
				}
			}
			elect "e" { use = "majority" }
		}`)
	run := func(args ...string) (stdout, stderr string) {
		t.Helper()
		return good(t, racflow(t, dir, append(args, filepath.Join(dir, "p.hcl"))...))
	}
	results, stderr := run("run", "--format", "jsonl")
	if vote := `{"voter":"llm","answer":"card_lost","weight":1,"accepted":true,"reading":"without markup"}`; strings.Count(results, vote) != 6 || strings.Contains(stderr, "do not count") {
		t.Errorf("read as people would:\n%s%s", results, stderr)
	}
	const warning = `sample.llm: 6 of 6 answers do not count (100 %), such as "**card_lost**" (6)`
	if _, stderr := run("run", "-var", "read=exact"); !strings.Contains(stderr, "warning: "+warning+"\n") {
		t.Errorf("letter by letter: no warning\n%s", stderr)
	}
	figures, stderr := run("eval", "--json", "-var", "read=exact")
	report := jsonLines[struct {
		Dropped []struct {
			Voter            string
			Answers, Dropped int
		}
	}](t, figures)[0]
	if d := report.Dropped; len(d) != 1 || d[0].Dropped != 6 || !strings.Contains(stderr, warning) {
		t.Errorf("evaluation: %+v\n%s", report, stderr)
	}
	if n := len(server.Asks()); n > 2 {
		t.Errorf("%d requests: how an answer is read changes no question", n)
	}
}
