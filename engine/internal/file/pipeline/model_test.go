package pipeline

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/racflow/racflow/sdk"
)

const modelFile = `-env OPENAI_API_KEY=sk-open-123
-env ANTHROPIC_API_KEY=sk-ant-123
-env TYPESAFE_API_KEY=sk-safe-123
-- p.hcl --
variable "price" {
  type    = map(number)
  default = {}
}
variable "provider" { default = "PROVIDER" }
limit "slow" { concurrency = 2 }
model "llm" {
  name     = "NAME"
  provider = var.provider
  base_url = "URL"
  price    = PRICE
  limit    = limit.slow
  batch    = true
}
knowledge "k" {
  source { path = "rows.tsv" }
  enrich "e" {
    use   = "terms"
    model = model.llm
  }
  store { use = "local" }
}
pipeline "p" {
  retrieve "r" {}
  sample "neighbours" { use = "neighbours" }
  sample "s" {
    n     = 2
    model = model.llm
    config { OWN }
  }
  elect "e" { use = "soft" }
}
-- rows.tsv --
text	label
hi	greet
`

type serviceConfig struct {
	API   string `config:"api" doc:"The form of requests."`
	URL   string `config:"base_url" doc:"The address."`
	Model string `config:"model" doc:"The model."`
	Key   string `config:"api_key,secret" doc:"The key."`
	Batch bool   `config:"batch" doc:"In batches."`
}

// A stage that names a model inherits the model's arguments, except those that it sets itself.
func TestModel(t *testing.T) {
	for name, test := range map[string]struct {
		replace []string
		use     string
		config  map[string]any
		price   *Price
		enabled bool
		limit   int
	}{
		"openai":          {nil, "openai", map[string]any{"model": "gpt", "batch": true, "api_key": "sk-open-123"}, nil, true, 2},
		"an address":      {[]string{"URL", "http://127.0.0.1:1/v1"}, "openai", map[string]any{"model": "gpt", "batch": true, "api_key": "sk-open-123", "base_url": "http://127.0.0.1:1/v1"}, nil, true, 2},
		"anthropic":       {[]string{"PROVIDER", "anthropic"}, "openai", map[string]any{"model": "gpt", "batch": true, "api_key": "sk-ant-123", "api": "anthropic", "base_url": "https://api.anthropic.com/v1"}, nil, true, 2},
		"systemone":       {[]string{"PROVIDER", "systemone"}, "decision", map[string]any{"model": "gpt", "batch": true, "api_key": "sk-safe-123", "api": "systemone", "base_url": "https://api.typesafe.ai/v1"}, nil, true, 2},
		"decisions":       {[]string{"PROVIDER", "decisions"}, "decision", map[string]any{"model": "gpt", "batch": true, "api_key": "sk-open-123", "api": "decisions", "base_url": "https://api.openai.com/v1"}, nil, true, 2},
		"a plugin":        {[]string{"PROVIDER", "words"}, "words", map[string]any{}, nil, true, 2},
		"no model":        {[]string{`"NAME"`, `""`}, "openai", map[string]any{"model": "", "batch": true, "api_key": "sk-open-123"}, nil, false, 2},
		"a price":         {[]string{"PRICE", "{ input = 0.5, output = 2 }"}, "openai", map[string]any{"model": "gpt", "batch": true, "api_key": "sk-open-123"}, &Price{Input: .5, Cached: .5, Output: 2}, true, 2},
		"the stage's own": {[]string{"OWN", `model = "other"`}, "openai", map[string]any{"model": "other", "batch": true, "api_key": "sk-open-123"}, nil, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.NewReplacer(append(test.replace, "PROVIDER", "openai", "NAME", "gpt", "URL", "", "PRICE", "var.price", "OWN", "")...).Replace(modelFile)
			path, o := unpack(t, txtar.Parse([]byte(text)))
			o.Catalog = append(catalog{sdk.EnrichStage("terms", "", opener[serviceConfig, sdk.Enricher], sdk.Network()), sdk.SampleStage("openai", "", opener[serviceConfig, sdk.Sampler], sdk.Network()), sdk.SampleStage("decision", "", opener[serviceConfig, sdk.Sampler], sdk.Network())}, stages().(catalog)...)
			file, diags := Load(t.Context(), path, o)
			if len(diags) > 0 {
				t.Fatal(diags)
			}
			s := file.Pipelines[0].Stages[2]
			var config map[string]any
			if err := json.Unmarshal(s.Config.Open, &config); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.config, config); diff != "" || s.Use != test.use || s.Enabled != test.enabled || s.Limit.Concurrency != test.limit {
				t.Errorf("%s is enabled %v with limit %d, and its config (-want +got):\n%s", s.Use, s.Enabled, s.Limit.Concurrency, diff)
			}
			if diff := cmp.Diff(test.price, s.Price); diff != "" {
				t.Errorf("price (-want +got):\n%s", diff)
			}
			if k := file.Knowledge[0]; k.Embed.Use != "minilm" || file.Pipelines[0].Stages[0].Retrieve.From != k || k.Enrich[0].Enabled != test.enabled {
				t.Errorf("embed is %q, and enrich is enabled %v", k.Embed.Use, k.Enrich[0].Enabled)
			}
		})
	}
}

// A target names a model block and its argument, or a block of a knowledge.
func TestOverrideModel(t *testing.T) {
	text := strings.NewReplacer("PROVIDER", "openai", "NAME", "", "URL", "", "PRICE", "var.price", "OWN", "").Replace(modelFile)
	path, o := unpack(t, txtar.Parse([]byte(text)))
	o.Catalog = append(catalog{sdk.SampleStage("openai", "", opener[serviceConfig, sdk.Sampler], sdk.Network()), sdk.EnrichStage("terms", "", opener[serviceConfig, sdk.Enricher], sdk.Network())}, stages().(catalog)...)
	for _, s := range []string{"model.llm.name=gpt", "model.llm.batch=false", "model.llm.price={ input = 1, output = 2 }", "embed.k.use=hashing", "store.k.analyzer=code", "s.base_url=http://127.0.0.1:2/v1"} {
		target, value, _ := strings.Cut(s, "=")
		o.Set = append(o.Set, Override{target, value})
	}
	file, diags := Load(t.Context(), path, o)
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	s, k := file.Pipelines[0].Stages[2], file.Knowledge[0]
	if want := `{"api_key":"sk-open-123","base_url":"http://127.0.0.1:2/v1","batch":false,"model":"gpt"}`; string(s.Config.Open) != want || !s.Enabled || s.Price == nil || s.Price.Output != 2 {
		t.Errorf("the config is %s, want %s; enabled %v, price %v", s.Config.Open, want, s.Enabled, s.Price)
	}
	if k.Embed.Use != "hashing" || k.Analyzer != "code" || !k.Enrich[0].Enabled {
		t.Errorf("embed is %s, the analyzer %s, enrich enabled %v", k.Embed.Use, k.Analyzer, k.Enrich[0].Enabled)
	}
	for given, want := range map[string]string{
		"model.lmm.name=x":   `model.lmm.name=x: There is no stage "lmm". Did you mean "llm"?`,
		"model.llm.nam=x":    `model.llm.nam=x: The stage "llm" has no argument "nam". Did you mean "llm.name"?`,
		"k.use=hashing":      `k.use=hashing: The stage "k" has no argument "use".`,
		"embed.kk.use=x":     `embed.kk.use=x: There is no stage "kk". Did you mean "k"?`,
		"store.k.analyser=x": `store.k.analyser=x: The stage "k" has no argument "analyser". Did you mean "k.analyzer"?`,
	} {
		target, value, _ := strings.Cut(given, "=")
		o.Set = []Override{{target, value}}
		if _, diags := Load(t.Context(), path, o); len(diags) != 1 || diags[0].Detail != want {
			t.Errorf("%s: %v, want %s", given, diags, want)
		}
	}
}

// The environment's token is sent only to the environment's server.
func TestMilvusOfTheEnvironment(t *testing.T) {
	type config struct {
		Address string `config:"address" doc:"The server."`
		Token   string `config:"token,secret" doc:"The key."`
		User    string `config:"user" doc:"The user."`
		Prefix  string `config:"prefix" doc:"Of names."`
	}
	for name, test := range map[string]struct{ env, store, want string }{
		"nothing said":      {"", ``, `{"address":"127.0.0.1:19530","token":""}`},
		"the environment's": {"-env MILVUS_ADDRESS=there:1\n-env MILVUS_TOKEN=hush-hush\n", `config { prefix = "x" }`, `{"address":"there:1","prefix":"x","token":"hush-hush"}`},
		"an address":        {"-env MILVUS_TOKEN=hush-hush\n", `config { address = "here:1" }`, `{"address":"here:1"}`},
		"a user":            {"-env MILVUS_TOKEN=hush-hush\n", `config "milvus" { user = "ada" }`, `{"user":"ada"}`},
		"of another store":  {"-env MILVUS_TOKEN=hush-hush\n", `config "local" { address = "here:1" }`, `{"address":"127.0.0.1:19530","token":"hush-hush"}`},
	} {
		t.Run(name, func(t *testing.T) {
			path, o := unpack(t, txtar.Parse([]byte(test.env+"-- p.hcl --\nknowledge \"k\" {\n  source { path = \"p.tsv\" }\n  store {\n    use = \"milvus\"\n    "+test.store+"\n  }\n}\n-- p.tsv --\ntext\nhi\n")))
			o.Catalog = append(catalog{sdk.StoreStage("milvus", "", opener[config, sdk.Store]), sdk.StoreStage("local", "", opener[config, sdk.Store])}, stages().(catalog)...)
			file, diags := Load(t.Context(), path, o)
			if len(diags) > 0 {
				t.Fatal(diags)
			}
			c := file.Knowledge[0].Store.Config
			if string(c.Open) != test.want || strings.Contains(string(c.Public), "hush") {
				t.Errorf("the config is %s, want %s; for people %s", c.Open, test.want, c.Public)
			}
		})
	}
}

// If a model without a name leaves an election without voters, the error points at that name.
func TestModelThatIsNeeded(t *testing.T) {
	path, o := unpack(t, txtar.Parse([]byte("-- p.hcl --\nmodel \"llm\" { name = \"\" }\npipeline \"p\" {\n  sample \"s\" { model = model.llm }\n  elect \"e\" { use = \"soft\" }\n}\n")))
	_, diags := Load(t.Context(), path, o)
	if len(diags) != 1 || diags[0].Subject.Start.Line != 1 || diags[0].Detail != "This name is empty, so stages with model = model.llm are off, and no voter is left for elect.e. Give the model a name." {
		t.Errorf("%v", diags)
	}
}
