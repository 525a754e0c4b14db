package pipeline

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// rerankers are stages of a plugin: near runs on this machine, far asks a service.
type rerankers struct{ Catalog }

func (r rerankers) Stage(kind sdk.Kind, use string) (sdk.Stage, bool) {
	open := func(context.Context, sdk.Setup, noConfig) (sdk.Reranker, error) { return nil, nil }
	switch {
	case kind == sdk.KindRerank && use == "near":
		return sdk.RerankStage(use, "Works here.", open), true
	case kind == sdk.KindRerank && use == "far":
		return sdk.RerankStage(use, "Asks a service.", open, sdk.Network(), sdk.PreferBatch(1)), true
	}
	return r.Catalog.Stage(kind, use)
}

// reranking loads a pipeline with these blocks.
func reranking(t *testing.T, blocks string) (*Pipeline, string) {
	t.Helper()
	path, o := unpack(t, txtar.Parse([]byte(`
-- p.hcl --
limit "few" { concurrency = 2 }
`+hashed+`
pipeline "p" {
`+blocks+`
}
`)))
	o.Catalog = rerankers{o.Catalog}
	file, diags := Load(t.Context(), path, o)
	var faults []string
	for _, d := range diags {
		faults = append(faults, d.Summary+": "+d.Detail)
	}
	if len(file.Pipelines) == 0 {
		t.Fatal(faults)
	}
	return file.Pipelines[0], strings.Join(faults, "\n")
}

func TestRerankBlock(t *testing.T) {
	p, faults := reranking(t, `
  retrieve "all" { from = knowledge.k }
  rerank "first" { use = "near" }
  rerank "second" {
    use   = "far"
    top_k = 3
    when  = "len(candidates) > 5"
    keep  = "score > 0.5 and rank < 3"
    limit = limit.few
    price { input = 2 }
    fallback "same" {
      when  = "failed"
      top_k = 2
    }
    fallback "other" {
      when = "failed or len(candidates) == 0"
      use  = "near"
    }
  }
  sample "knn" { use = "neighbours" }
  sample "centroids" { use = "prototype" }
  elect "e" {
    use    = "soft"
    accept = "answer in candidate_labels"
  }`)
	if faults != "" {
		t.Fatal(faults)
	}
	first, second := p.Stages[1], p.Stages[2]
	if first.TopK != 20 || first.Keep != nil || first.Retries != retries || first.Kind != sdk.KindRerank {
		t.Errorf("got %+v", first)
	}
	must.Equal(t, "top_k, limit, price and retries of the second", []any{3, true, &Price{Input: 2, Cached: 2}, networkRetries}, []any{second.TopK, second.Limit != nil, second.Price, second.Retries})
	same, other := second.Fallbacks[0].Stage, second.Fallbacks[1].Stage
	if same.TopK != 2 || same.Keep == nil || other.TopK != 3 || other.Keep != nil {
		t.Errorf("fallbacks %+v and %+v", same, other)
	}
	for i, want := range [][]int{nil, {0}, {1}, {2}, {0}} {
		if got := p.Needs(i); !slices.Equal(got, want) {
			t.Errorf("stage %d needs %v, want %v", i, got, want)
		}
	}
	if d := cmp.Diff([]int{2, 3, 4}, p.Needs(5)); d != "" {
		t.Errorf("the election needs (-want +got):\n%s", d)
	}
}

func TestRerankFaults(t *testing.T) {
	const retrieve = `retrieve "all" { from = knowledge.k }` + "\n"
	for name, c := range map[string]struct{ blocks, want string }{
		"nothing above":     {`rerank "r" { use = "near" }`, "near reads candidates or labels, and no retrieve stage stands above"},
		"nothing is on":     {"retrieve \"all\" {\nfrom = knowledge.k\nenabled = false\n}\nrerank \"r\" { use = \"near\" }", "no retrieve stage stands above"},
		"no use":            {retrieve + `rerank "r" {}`, "Missing argument: Say which stage does the work"},
		"an unknown use":    {retrieve + `rerank "r" { use = "neer" }`, `No plugin offers the rerank stage "neer"`},
		"none left":         {retrieve + "rerank \"r\" {\nuse = \"near\"\ntop_k = 0\n}", "top_k"},
		"a mode":            {retrieve + "rerank \"r\" {\nuse = \"near\"\nmode = \"dense\"\n}", "mode"},
		"a limit for none":  {retrieve + "rerank \"r\" {\nuse = \"near\"\nlimit = limit.few\n}", "Limit without calls"},
		"a price per token": {retrieve + "rerank \"r\" {\nuse = \"far\"\nprice { output = 1 }\n}", "input is missing"},
		"votes":             {retrieve + "rerank \"r\" {\nuse = \"near\"\nkeep = \"margin > 0\"\n}", "margin"},
	} {
		if _, faults := reranking(t, c.blocks); !strings.Contains(faults, c.want) {
			t.Errorf("%s: got %q, want %q", name, faults, c.want)
		}
	}
}
