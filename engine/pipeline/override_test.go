package pipeline

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/racflow/racflow/sdk"
)

const overridden = `-- p.hcl --
variable "doubt" { default = 0.1 }
variable "weights" {
  type    = map(number)
  default = {}
}
variable "train" {
  type    = path
  default = "train.tsv"
}
knowledge "k" {
  source { path = var.train }
  enrich "contextualize" {
    use = "context"
    config { model = "m" }
  }
  enrich "place" { use = "path" }
  embed { use = "minilm" }
  store { use = "local" }
}
pipeline "p" {
  input { path = "train.tsv" }
  retrieve "near" {
    from  = knowledge.k
    top_k = 30
  }
  sample "near" {
    use = "neighbours"
    config { k = 5 }
    config "neighbours" { k = 6 }
  }
  sample "llm" {
    use  = "neighbours"
    when = "margin < var.doubt"
  }
  elect "e" {
    use = "weighing"
    config { weights = var.weights }
  }
}
-- train.tsv --
text	label
`

// loadWith loads the file above with arguments replaced: target=value each.
func loadWith(t *testing.T, overrides ...string) (*File, string) {
	t.Helper()
	path, o := unpack(t, txtar.Parse([]byte(overridden)))
	for _, given := range overrides {
		target, value, _ := strings.Cut(given, "=")
		o.Set = append(o.Set, Override{target, value})
	}
	o.Catalog = append(o.Catalog.(catalog), sdk.ElectStage("weighing", "", opener[struct {
		Weights map[string]string `config:"weights" doc:"Of the voters."`
	}, sdk.Elector]))
	file, diags := Load(t.Context(), path, o)
	var all []string
	for _, d := range diags {
		all = append(all, d.Detail)
	}
	return file, strings.Join(all, "\n")
}

func TestOverride(t *testing.T) {
	file, faults := loadWith(t, "near.top_k=7", "sample.near.k=9", "llm.when=margin < 2 * var.doubt",
		"e.enabled=1 == 1", "var.doubt=0.4", "e.weights={near = 2.5}", `llm.n="3"`)
	if faults != "" {
		t.Fatal(faults)
	}
	s := file.Pipelines[0].Stages
	if s[0].Retrieve.Ranking.TopK != 7 || string(s[1].Config.Open) != `{"k":9}` || s[2].When.Text() != "margin < 2 * var.doubt" || s[2].N != 3 {
		t.Errorf("top_k %d, config %s, when %q, n %d", s[0].Retrieve.Ranking.TopK, s[1].Config.Open, s[2].When.Text(), s[2].N)
	}
	if string(s[3].Config.Open) != `{"weights":{"near":"2.5"}}` || file.Variables[0].Value != "0.4" {
		t.Errorf("elect %s, doubt %s", s[3].Config.Open, file.Variables[0].Value)
	}
	if file, faults = loadWith(t, "var.weights={near = 2, llm = 0.5}"); faults != "" || file.Variables[1].Value != "llm = 0.5, near = 2" {
		t.Errorf("weights are %q; %s", file.Variables[1].Value, faults)
	}
}

func TestOverrideEnrich(t *testing.T) {
	file, faults := loadWith(t, "enrich.place.enabled=false", "contextualize.embed=false", "enrich.contextualize.model=other")
	if faults != "" {
		t.Fatal(faults)
	}
	k := file.Knowledge[0]
	on := k.Enrichers()
	if len(on) != 1 || on[0].Embedded || !on[0].Lexical || !strings.Contains(string(on[0].Config.Open), `"other"`) {
		t.Errorf("enabled: %+v", on)
	}
	if all := k.Stages(); len(all) != 3 || all[0] != on[0] || all[1] != k.Embed {
		t.Errorf("stages: %v", all)
	}
}

func TestOverrideFaults(t *testing.T) {
	tests := []struct{ given, want string }{
		{"near.top_k=0", "top_k is a whole number of at least 1."},
		{"near.top_k=var.x", `There is no variable "x" in this file.`},
		{"enrich.contextualiz.enabled=false", `enrich.contextualiz.enabled=false: There is no stage "contextualiz". Did you mean "contextualize"?`},
		{"contextualize.lexicl=false", `contextualize.lexicl=false: The stage "contextualize" has no argument "lexicl". Did you mean "contextualize.lexical"?`},
		{"near.topk=5", `near.topk=5: The stage "near" has no argument "topk". Did you mean "near.top_k"?`},
		{"llm.kk=5", `llm.kk=5: The stage "llm" has no argument "kk". Did you mean "llm.k"?`},
		{"lmm.k=5", `lmm.k=5: There is no stage "lmm". Did you mean "llm"?`},
		{"var.dubt=1", `var.dubt=1: p.hcl has no variable "dubt". Did you mean "doubt"?`},
		{"top_k=5", "top_k=5: Name a stage's argument or a variable: STAGE.ARGUMENT, BLOCK.STAGE.ARGUMENT or var.NAME."},
		{"near.timeout=5s", `near.timeout=5s: Stages of several kinds are called "near": write retrieve.near.timeout.`},
		{"llm.when=margn < 0.1", `There is no "margn" here. Did you mean "margin"?`},
		{"llm.k=many", `k is of type int: a number is required.`},
		{"e.use=sfot", `No plugin offers the elect stage "sfot". Did you mean "soft"?`},
		{"var.weights=5", `-var gives the map "weights" the value 5. Write { name = value, ... }.`},
	}
	for _, test := range tests {
		t.Run(test.given, func(t *testing.T) {
			_, got := loadWith(t, test.given)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
