package pipeline

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/racflow/racflow/engine/internal/file/grammar"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

func TestServices(t *testing.T) {
	file, _ := load(t, `
-- p.hcl --
limit "api" {
  concurrency       = 64
  tokens_per_minute = 200000
}
limit "slow" { requests_per_minute = 3 }
knowledge "k" {
  source { path = "-" }
  enrich "contextualize" {
    use   = "context"
    limit = limit.slow
    config { model = "m" }
    price {
      input  = 1
      output = 5
    }
  }
  enrich "off" {
    use     = "context"
    enabled = false
    config { model = "m" }
  }
  embed {
    use    = "hashing"
    memory = "512MiB"
  }
  store { use = "local" }
}
pipeline "p" {
  memory     = "6GiB"
  max_cost   = 2.5
  max_tokens = 5000000000
  retrieve "r" { from = knowledge.k }
  prompt "unread" { use = "completion" }
  prompt "first" { use = "completion" }
  sample "one" {
    use   = "openai"
    n     = 3
    limit = limit.api
    config { model = "m" }
    price {
      input  = 1.5
      output = 6
    }
    fallback "other" {
      when = "failed"
      n    = 4
      config { model = "o" }
    }
    fallback "cheap" {
      when  = "failed"
      limit = limit.slow
      config { model = "c" }
      price {
        input  = 1
        cached = 0.25
        output = 0
      }
    }
  }
  sample "off" {
    use     = "openai"
    enabled = false
    n       = 9
    config { model = "m" }
  }
  sample "knn" {
    use    = "neighbours"
    n      = 7
    memory = "1.5GiB"
  }
  prompt "second" {
    use = "completion"
    fallback "plain" {
      when = "failed"
    }
  }
  sample "two" {
    use   = "openai"
    n     = 2
    resamples = 2
    config { model = "m" }
    price {
      input  = 0.5
      output = 0
    }
  }
  elect "e" { use = "soft" }
}
`)
	p := file.Pipelines[0]
	if want := (Budget{Cost: 2.5, Tokens: 5e9}); p.Budget != want {
		t.Errorf("the budget is %+v, want %+v", p.Budget, want)
	}
	if embed, voter := file.Knowledge[0].Embed.Memory, p.Stages[5].Memory; p.Memory != 6<<30 || embed != 512<<20 || voter != 3<<29 || p.Stages[0].Memory != 0 {
		t.Errorf("memory is bounded by %d, that of the embedder by %d, that of the voter by %d", p.Memory, embed, voter)
	}
	n := map[string]int{}
	for _, s := range p.Stages {
		n[s.Name] = s.N
	}
	if d := cmp.Diff(map[string]int{"r": 0, "unread": 0, "first": 4, "one": 3, "off": 9, "knn": 7, "second": 2, "two": 2, "e": 0}, n); d != "" {
		t.Errorf("samples per stage (-want +got):\n%s", d)
	}
	second, two := p.Stages[6], p.Stages[7]
	if got := second.Fallbacks[0].Stage.N; got != 2 {
		t.Errorf("the fallback of a prompt stage writes for %d samples, want 2", got)
	}
	if two.Resamples != 2 || p.Stages[3].Resamples != 0 || two.Limit != nil {
		t.Errorf("resamples: %d, %d, want 2, 0; limit: %v", two.Resamples, p.Stages[3].Resamples, two.Limit)
	}
	one := p.Stages[3]
	other, cheap := one.Fallbacks[0].Stage, one.Fallbacks[1].Stage
	api := file.Limits[0]
	must.Equal(t, "one and its fallback have the first limit; its concurrency, requests and tokens", []any{true, true, 64, 0, 200000}, []any{one.Limit == api, other.Limit == api, api.Concurrency, api.Requests, api.Tokens})
	if slow := file.Limits[1]; cheap.Limit != slow || slow.Concurrency != grammar.DefaultConcurrency || slow.Requests != 3 {
		t.Errorf("limit: %+v", cheap.Limit)
	}
	prices := []Price{*one.Price, *other.Price, *cheap.Price, *two.Price}
	if d := cmp.Diff([]Price{{1.5, 1.5, 6, 0}, {1.5, 1.5, 6, 0}, {1, 0.25, 0, 0}, {0.5, 0.5, 0, 0}}, prices); d != "" {
		t.Errorf("prices (-want +got):\n%s", d)
	}
	contextualize := file.Knowledge[0].Enrich[0]
	if contextualize.Limit != file.Limits[1] || contextualize.Retries != networkRetries || !contextualize.Embedded || !contextualize.Lexical {
		t.Errorf("enrich stage: %+v", contextualize)
	}
	if free := p.Unpriced(); free != nil {
		t.Errorf("without a price: %q", free)
	}
	*two.Price = Price{} // declared to be free
	contextualize.Price = nil
	if free := p.Unpriced(); !slices.Equal(free, []string{"enrich.contextualize"}) {
		t.Errorf("without a price: %q", free)
	}
}

// A price with null arguments, from a variable without a value, counts as missing. A price of 0
// declares the service to be free.
func TestPriceThatNobodyGave(t *testing.T) {
	for name, test := range map[string]struct {
		price string
		want  string // of the first diagnostic; empty: none
		given *Price
	}{
		"given":    {`{ input = 1, output = 2 }`, "", &Price{1, 1, 2, 0}},
		"free":     {`{ input = 0, output = 0 }`, "", &Price{}},
		"nobody's": {`{}`, "sample.llm has no price, so max_cost cannot bound what it spends: write price { ... } in its block", nil},
		"half":     {`{ input = 1 }`, "output is null, while the price says", &Price{1, 1, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			path, o := unpack(t, txtar.Parse([]byte(`
-- p.hcl --
variable "price" {
  type    = map(number)
  default = `+test.price+`
}
`+hashed+`
pipeline "p" {
  max_cost = 5
  retrieve "near" { from = knowledge.k }
  prompt "shots" { use = "completion" }
  sample "llm" {
    use = "openai"
    config { model = "m" }
    price {
      input  = length(var.price) == 0 ? null : var.price.input
      output = length(var.price) < 2 ? null : var.price.output
    }
  }
  elect "e" { use = "soft" }
}
`)))
			file, diags := Load(t.Context(), path, o)
			if d := cmp.Diff(test.given, file.Pipelines[0].Stages[2].Price); d != "" {
				t.Errorf("price (-want +got):\n%s", d)
			}
			if test.want == "" && diags.HasErrors() || test.want != "" && (!diags.HasErrors() || !strings.HasPrefix(diags[0].Detail, test.want)) {
				t.Errorf("diagnostics %v, want %q", diags, test.want)
			}
		})
	}
}
