//go:build linux

package cli

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// behaviourPipeline asks a model, with every argument that a file may give, and another voter.
const behaviourPipeline = `
variable "url" {}
knowledge "k" {
  source { path = "rows.tsv" }
  embed {
    use = "EMBEDDER"
    EMBED
  }
  store { use = "local" }
}
pipeline "p" {
  input { path = "items.tsv" }
  retrieve "near" { from = knowledge.k }
  sample "knn" { use = "neighbours" }
  prompt "question" {
    use = "PROMPT"
  }
  sample "llm" {
    use = "openai"
    n   = 2
    config {
      base_url = var.url
      model    = "any"
      api_key  = secret("BEHAVIOUR_KEY")
      seed     = 7
      stop     = ["\n"]
      logprobs = true
      timeout  = "TIMEOUT"
    }
  }
  elect "e" {
    use    = "majority"
    accept = "answer in labels"
  }
}
`

const behaviourItems = 12

// embedderConfig is the embedder's config if embeddings are tried.
const embedderConfig = `config {
      base_url  = var.url
      model     = "any"
      dimension = 2
    }`

// behaviourLabel is the right answer for an item or a row.
func behaviourLabel(text string) string {
	if strings.Contains(text, "invoice") {
		return "invoice_request"
	}
	return "card_lost"
}

// behave runs the pipeline against a server. It returns the exit code and what the user sees:
// standard error, and the results.
func behave(t *testing.T, o modelserver.Options, replacements ...string) (code int, stderr string, results string) {
	t.Helper()
	o.Answer = func(a modelserver.Ask, _ int) string {
		text := a.Text()
		if text = text[max(0, strings.LastIndex(text, "Text: ")):]; strings.Contains(text, "an invoice") {
			return "invoice_request"
		}
		return "card_lost"
	}
	o.Vector = func(text string) []float32 {
		if behaviourLabel(text) == "card_lost" {
			return []float32{1, 0}
		}
		return []float32{0, 1}
	}
	server := modelserver.Serve(t, o)
	rows := "text\tlabel\n" + numbered(12, "my card is lost %[1]d\tcard_lost\nsend me the invoice %[1]d\tinvoice_request\n")
	items := "id\ttext\n"
	for i := range behaviourItems {
		text := []string{"where is my card, number", "an invoice, please, number"}[i%2]
		switch i {
		case 4:
			text = "my " + modelserver.Harmful + " card, number"
		case 5:
			text = "an invoice " + modelserver.Endless + ", number"
		}
		items += fmt.Sprintf("q%d\t%s %d\n", i, text, i)
	}
	hcl := strings.NewReplacer(append(replacements, "EMBEDDER", "hashing", "EMBED", "", "PROMPT", "completion", "TIMEOUT", "1m")...).Replace(behaviourPipeline)
	dir := folder(t, map[string]string{"p.hcl": hcl, "rows.tsv": rows, "items.tsv": items})
	c := racflow(t, dir, "run", "-var", "url="+server.URL, "p.hcl")
	c.Env = append(os.Environ(), "BEHAVIOUR_KEY=sk-behaviour-hush")
	code, results, stderr = ran(t, c)
	if strings.Contains(results+stderr, "hush") {
		t.Error("the key is shown")
	}
	return code, stderr, results
}

// decides reports whether a decision model is tried.
func decides(t modelserver.Try) bool {
	return t == modelserver.AsSystemOne || t == modelserver.AsWideSystemOne || t == modelserver.AsDecisions
}

// TestBehaviours runs a pipeline against every behaviour of the model server. It checks the claims of
// the table in modelserver's README.
func TestBehaviours(t *testing.T) {
	long(t)
	for _, b := range modelserver.Behaviours() {
		t.Run(b.Name, func(t *testing.T) {
			var replacements []string
			n := 2
			switch b.Try {
			case modelserver.AsObject:
				replacements = []string{"PROMPT", "chat"}
			case modelserver.AsEmbedding:
				replacements = []string{"EMBEDDER", "openai", "EMBED", embedderConfig}
			case modelserver.AsMessages:
				replacements = []string{"seed     = 7", `api = "anthropic"`, "logprobs = true", "", `stop     = ["\n"]`, ""}
			case modelserver.AsMany:
				replacements, n = []string{"n   = 2", "n   = 5"}, 5
			case modelserver.AsBatch:
				replacements = []string{"logprobs = true", "batch    = true"}
			}
			if decides(b.Try) {
				n = 1
				config := `api = "systemone"`
				switch b.Try {
				case modelserver.AsDecisions:
					config = `api = "decisions"`
				case modelserver.AsWideSystemOne:
					config = `none = "neither"`
				}
				replacements = []string{"use = \"openai\"\n    n   = 2", `use = "decision"`, "seed     = 7", config, "logprobs = true", "", `stop     = ["\n"]`, ""}
			}
			if b.Name == "hangs" {
				replacements = append(replacements, "TIMEOUT", "2s")
			}
			code, stderr, results := behave(t, modelserver.Named(b.Name), replacements...)
			if code != b.Exit || !strings.Contains(stderr+results, b.Says) {
				t.Errorf("exit code %d, want %d and %q", code, b.Exit, b.Says)
			}
			if b.Says == "" && strings.Contains(stderr, "WARN") || strings.Contains(stderr, "warning: ") && !strings.Contains(b.Says, "answers do not count") && !b.Lost {
				t.Error("something is reported that the table does not say")
			}
			items, votes := 0, 0
			for _, r := range jsonLines[struct {
				Text, Answer string
				Error        any
				Votes        []struct {
					Voter, Answer string
					Accepted      bool
				}
			}](t, results) {
				items++
				if r.Answer != behaviourLabel(r.Text) && (b.Exit == 0 || r.Error == nil) {
					t.Errorf("%q is answered %q", r.Text, r.Answer)
				}
				for _, v := range r.Votes {
					if v.Voter == "llm" && v.Accepted && v.Answer == behaviourLabel(r.Text) {
						votes++
					}
				}
			}
			want := behaviourItems
			if b.Exit == 1 { // the run did not start
				want = 0
			}
			if items != want || (votes == n*behaviourItems) == b.Lost {
				t.Errorf("%d items, %d votes of the model", items, votes)
			}
			if t.Failed() {
				t.Logf("%s\n%s", stderr, results)
			}
		})
	}
}
