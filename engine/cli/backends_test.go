package cli

import (
	"testing"

	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

const backendsPipeline = `
variable "first" {}
variable "second" {}
knowledge "k" {
  source { path = "rows.tsv" }
  embed { use = "hashing" }
  store { use = "local" }
}
pipeline "p" {
  input { path = "items.tsv" }
  retrieve "near" { from = knowledge.k }
  prompt "question" { use = "chat" }
  sample "llm" {
    use     = "openai"
    retries = 2
    config {
      base_url       = var.first
      model          = "first"
      backends       = ["second"]
      backend_urls   = { second = var.second }
      backend_models = { second = "second" }
      backend_apis   = { second = "anthropic" }
    }
  }
  elect "e" { use = "majority" }
}
`

// TestServiceDies: the only voter has two services. The first ends for good in the middle of a run,
// and the second is busy at its first calls. No item fails, each answer names its model, none is paid
// for twice, and an offline run gives the same answers.
func TestServiceDies(t *testing.T) {
	const items, served = 40, 15
	first := modelserver.Serve(t, modelserver.Options{Faults: []modelserver.Fault{{Kind: modelserver.Reset, If: func(a modelserver.Ask) bool { return a.Number >= served }}}})
	second := modelserver.Serve(t, modelserver.Options{Faults: []modelserver.Fault{{Kind: modelserver.Status, Status: 429, First: 3}}})
	dir := folder(t, map[string]string{
		"p.hcl": backendsPipeline, "items.tsv": "text\n" + numbered(items, "where is card number %d\n"),
		"rows.tsv": "text\tlabel\nmy card is gone\tcard_lost\n",
	})
	run := func(args ...string) string {
		t.Helper()
		out, _ := good(t, racflow(t, dir, append([]string{"run", "-var", "first=" + first.URL, "-var", "second=" + second.URL, "p.hcl"}, args...)...))
		return out
	}
	out := run()
	by := map[string]int{}
	for _, r := range jsonLines[struct {
		Answer string
		Votes  []struct{ Model string }
	}](t, out) {
		if r.Answer != "card_lost" || len(r.Votes) != 1 {
			t.Fatalf("%+v in\n%s", r, out)
		}
		by[r.Votes[0].Model]++
	}
	if by["first"] != served || by["second"] != items-served || first.Doubled(1)+second.Doubled(1) != 0 {
		t.Errorf("answered by %v, %d answers too many", by, first.Doubled(1)+second.Doubled(1))
	}
	if again := run("--offline"); out != again {
		t.Errorf("offline:\n%s\nonline:\n%s", again, out)
	}
}
