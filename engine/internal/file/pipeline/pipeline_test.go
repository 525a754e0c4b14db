package pipeline

import (
	"flag"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/racflow/racflow/engine/internal/file/bounded"
	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// load loads an archive that must have no error.
func load(t testing.TB, archive string) (file *File, root string) {
	t.Helper()
	path, o := unpack(t, txtar.Parse([]byte(archive)))
	file, diags := Load(t.Context(), path, o)
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	return file, filepath.Dir(absolute(path, o.Dir))
}

// parse loads a file that is not on disk.
func parse(t testing.TB, src []byte, path string, o Options) (*File, hcl.Diagnostics) {
	l := newLoader(t.Context(), path, o)
	diags := l.parse(src)
	return l.file, diags
}

const intent = `-var model=gpt
-var on=true
-var train=given.csv
-var-file my.vars
-env RACFLOW_VAR_store=milvus
-env RACFLOW_VAR_model=ignored
-env KEY=hushhush
-env ADDRESS=db:1
-dir elsewhere
-- p.hcl --
variable "store" { default = "local" }
variable "model" {
  description = "The model."
  default     = env("MODEL", "")
}
variable "train" {
  type    = path
  default = "train.tsv"
}
variable "stops" { default = ["a"] }
variable "on" { type = bool }
variable "key" { default = secret("KEY") }

locals {
  header = "Bearer ${local.token}"
  token  = trimspace("${var.key} ")
}

knowledge "utterances" {
  source {
    path = var.train
    id   = "nr"
    meta = ["lang"]
    context = "title"
  }
  embed {
    use   = "minilm"
    batch = 8
  }
  store {
    use      = var.store
    analyzer = "code"
    config { }
    config "milvus" { address = env("ADDRESS") }
    config "local" { }
  }
}

pipeline "intent" {
  batch = 32
  input { path = "test.jsonl" }
  retrieve "neighbours" {
    from    = knowledge.utterances
    top_k   = 30
    keep    = "dense > 0.2"
    timeout = "1m30s"
    fallback "lexical" {
      when = "failed"
      mode = "lexical"
    }
  }
  sample "knn" {
    use = "neighbours"
    config {
      k = "5"
    }
  }
  sample "prototype" { use = "prototype" }
  prompt "shots" {
    use = "completion"
    config { template = "prompts/x.tmpl" }
  }
  sample "llm" {
    use      = "openai"
    enabled  = var.model != ""
    when     = "margin < 0.12"
    n        = 6
    on_error = "skip"
    retries  = 0
    config {
      model      = "overruled"
      max_tokens = 1e3
      logs       = var.on
    }
    config "openai" {
      model    = var.model
      key      = "plain but the tag says secret"
      headers  = { Authorization = local.header }
      stop     = var.stops
      patience = "5s"
      base_url = null
    }
  }
  elect "intent" {
    use    = "soft"
    accept = "answer in labels"
    flag   = "agreement < 0.5"
    fallback "count" {
      when = "failed"
      use  = "majority"
    }
  }
}
-- my.vars --
-- elsewhere/my.vars --
stops = ["x", "y"]
model = "from the file"
-- elsewhere/given.csv --
-- train.tsv --
-- test.jsonl --
`

func TestLoad(t *testing.T) {
	file, root := load(t, intent)
	type variable struct{ Value, From string }
	got := map[string]variable{}
	for _, v := range file.Variables {
		got[v.Name] = variable{v.Value, v.From}
	}
	want := map[string]variable{
		"store": {"milvus", "RACFLOW_VAR_store"}, "model": {"gpt", "-var"},
		"train": {filepath.Join(root, "elsewhere/given.csv"), "-var"},
		"stops": {"x, y", "my.vars"}, "on": {"true", "-var"}, "key": {"(secret)", "default"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("variables (-want +got):\n%s", d)
	}

	k := file.Knowledge[0]
	source := Source{
		Path: filepath.Join(root, "elsewhere/given.csv"), Form: source.Form{Format: source.CSV}, ID: "nr", Text: "text", Label: "label",
		Context: "title", Meta: []string{"lang"}, Flag: "--knowledge-column", Range: k.Sources[0].Range,
		Origin: Origin{Said: []string{"given.csv"}, Text: "var.train"},
	}
	if d := cmp.Diff(source, k.Sources[0]); d != "" {
		t.Errorf("source (-want +got):\n%s", d)
	}
	must.Equal(t, "knowledge", []any{"code", "minilm", 8, sdk.KindEmbed, "milvus"}, []any{k.Analyzer, k.Embed.Use, k.Embed.Batch, k.Embed.Kind, k.Store.Use})
	if got := string(k.Store.Config.Open); got != `{"address":"db:1"}` {
		t.Errorf("store config: %s", got)
	}

	p := file.Pipelines[0]
	if p.Batch != 32 || p.Input.Path != filepath.Join(root, "test.jsonl") || p.Input.Form.Format != "jsonl" {
		t.Errorf("pipeline: %+v", p)
	}
	retrieve := p.Stages[0]
	ranking := sdk.Ranking{Search: sdk.Search{Mode: sdk.ModeHybrid, NumCandidates: 120}, Fusion: sdk.Fusion{Method: "weighted", DenseWeight: 0.7, K: 60}, TopK: 30}
	if d := cmp.Diff(ranking, retrieve.Retrieve.Ranking); d != "" || retrieve.Retrieve.From != k {
		t.Errorf("ranking (-want +got):\n%s", d)
	}
	must.Equal(t, "retrieve", []any{90 * time.Second, 0, 2, FailItem, "dense > 0.2"}, []any{retrieve.Timeout, retrieve.Workers, retrieve.Retries, retrieve.OnError, retrieve.Keep.Text()})
	ranking.Mode = sdk.ModeLexical
	f := retrieve.Fallbacks[0]
	if d := cmp.Diff(ranking, f.Stage.Retrieve.Ranking); d != "" || !f.When.Reads("failed") || f.Stage.Keep != nil || f.Stage.When != nil {
		t.Errorf("fallback %+v (-want +got):\n%s", f.Stage, d)
	}
	llm := p.Stages[4]
	must.Equal(t, "llm", []any{true, 6, SkipItem, 0, true}, []any{llm.Enabled, llm.N, llm.OnError, llm.Retries, llm.When.Reads("margin")})
	if got := string(p.Stages[1].Config.Open); got != `{"k":5}` {
		t.Errorf("knn config: %s", got)
	}
	if got := string(p.Stages[3].Config.Open); got != `{"template":"`+filepath.Join(root, "prompts/x.tmpl")+`"}` {
		t.Errorf("prompt config: %s", got)
	}
	open := `{"headers":{"Authorization":"Bearer hushhush"},"key":"plain but the tag says secret","logs":true,` +
		`"max_tokens":1000,"model":"gpt","patience":"5s","stop":["x","y"]}`
	if d := cmp.Diff(open, string(llm.Config.Open)); d != "" {
		t.Errorf("open (-want +got):\n%s", d)
	}
	public := `{"headers":"(secret)","key":"(secret)","logs":true,"max_tokens":1000,"model":"gpt","patience":"5s","stop":["x","y"]}`
	if d := cmp.Diff(public, string(llm.Config.Public)); d != "" {
		t.Errorf("public (-want +got):\n%s", d)
	}
	identity := `{"headers":"(secret)","logs":true,"max_tokens":1000,"model":"gpt","stop":["x","y"]}`
	if d := cmp.Diff(identity, string(llm.Config.Identity)); d != "" {
		t.Errorf("identity (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"Bearer hushhush", "hushhush", "plain but the tag says secret"}, llm.Config.Secrets); d != "" {
		t.Errorf("secrets (-want +got):\n%s", d)
	}
	if k.Store.Config.Secrets != nil {
		t.Errorf("secrets of a stage that knows none: %q", k.Store.Config.Secrets)
	}
	if got := string(llm.Config.Ranges["model"].SliceBytes(file.Sources[file.Path].Bytes)); !strings.Contains(got, "var.model") {
		t.Errorf("the range of model holds %q", got)
	}
	if got := p.Stages[5].Fallbacks[0].Stage; got.Use != "majority" || got.Accept.Text() != "answer in labels" {
		t.Errorf("fallback of the election: %+v", got)
	}
}

// hashed is the knowledge of most pipelines of the tests.
const hashed = `knowledge "k" {
  source { path = "-" }
  embed { use = "hashing" }
  store { use = "local" }
}`

func TestDisabledStageMayMissItsEnvironment(t *testing.T) {
	file, _ := load(t, `
-- p.hcl --
`+hashed+`
pipeline "p" {
  retrieve "r" { from = knowledge.k }
  sample "knn" { use = "neighbours" }
  prompt "shots" { use = "completion" }
  sample "llm" {
    use     = "openai"
    enabled = false
    config {
      model = env("MODEL")
      key   = secret("KEY")
    }
    fallback "other" {
      when = "failed"
      config { key = secret("OTHER") }
    }
  }
  elect "e" { use = "soft" }
}
`)
	if s := file.Pipelines[0].Stages[3]; s.Enabled || string(s.Config.Open) != "{}" {
		t.Errorf("got %+v", s)
	}
}

func TestKeepAndMode(t *testing.T) {
	path, o := unpack(t, txtar.Parse([]byte(`
-- p.hcl --
`+hashed+`
pipeline "p" {
  retrieve "r" {
    from = knowledge.k
    keep = "dense > 0.2"
    fallback "same" {
      when  = "failed"
      mode  = "hybrid"
      top_k = 5
    }
    fallback "other" {
      when = "failed"
      mode = "lexical"
    }
    fallback "own" {
      when = "failed"
      mode = "lexical"
      keep = "lexical > 1"
    }
    fallback "never" {
      when = "failed"
      mode = "dense"
      keep = "lexical > 1"
    }
  }
  retrieve "never" {
    from = knowledge.k
    mode = "lexical"
    keep = "dense > 0.2 and label != \"\""
  }
  retrieve "either" {
    from = knowledge.k
    mode = "lexical"
    keep = "dense > 0.2 or score > 1"
  }
}
`)))
	file, diags := Load(t.Context(), path, o)
	want := []string{"dense > 0.2", "", "lexical > 1", "lexical > 1"}
	for i, f := range file.Pipelines[0].Stages[0].Fallbacks {
		if got := f.Stage.Keep; want[i] == "" && got != nil || want[i] != "" && got.Text() != want[i] {
			t.Errorf("%s has the keep %v, want %q", f.Name, got, want[i])
		}
	}
	var lines []int
	for _, d := range diags {
		lines = append(lines, d.Subject.Start.Line)
	}
	if d := cmp.Diff([]int{27, 33}, lines); d != "" || diags.HasErrors() {
		t.Errorf("warnings on lines (-want +got):\n%s\n%v", d, diags)
	}
}

func TestFilter(t *testing.T) {
	file, _ := load(t, `-var labels=a, b
-- p.hcl --
variable "labels" { type = list(string) }
knowledge "k" {
  source {
    path   = "-"
    format = "jsonl"
  }
  embed { use = "hashing" }
  store { use = "local" }
}
pipeline "p" {
  retrieve "r" {
    from   = knowledge.k
    filter = "label in var.labels and meta.year >= 2020"
    fallback "same" {
      when = "failed"
      mode = "lexical"
    }
    fallback "own" {
      when   = "failed"
      filter = "meta.tenant == item.meta.tenant"
    }
    fallback "none" {
      when   = "failed"
      filter = null
    }
  }
  retrieve "none" {
    from   = knowledge.k
    filter = length(var.labels) > 5 ? "label in var.labels" : null
  }
}
`)
	r := file.Pipelines[0].Stages[0]
	filters := []*rule.Filter{r.Retrieve.Filter}
	for _, f := range r.Fallbacks {
		filters = append(filters, f.Stage.Retrieve.Filter)
	}
	filters = append(filters, file.Pipelines[0].Stages[1].Retrieve.Filter)
	const given = `label in var.labels and meta.year >= 2020`
	for i, want := range []string{given, given, `meta.tenant == item.meta.tenant`, "", ""} {
		if f := filters[i]; want == "" && f != nil || want != "" && f.Text() != want {
			t.Errorf("filter %d is %v, want %q", i, f, want)
		}
	}
	bound, err := filters[0].Bind(t.Context(), &rule.Env{})
	if want := `(label in ["a", "b"] and meta["year"] >= 2020)`; err != nil || bound.String() != want {
		t.Errorf("got %v, %v, want %s", bound, err, want)
	}
}

func TestInputReplacesThePath(t *testing.T) {
	const rest = `
-- p.hcl --
knowledge "k" {
  source { path = "p.hcl" }
  embed { use = "hashing" }
  store { use = "local" }
}
pipeline "with" {
  input {
    path = "missing.tsv"
    text = "body"
  }
  retrieve "r" { from = knowledge.k }
}
pipeline "without" {
  retrieve "r" { from = knowledge.k }
}
`
	file, root := load(t, "-input given.jsonl"+rest)
	for i, text := range []string{"body", "text"} {
		if in := file.Pipelines[i].Input; in.Path != filepath.Join(root, "given.jsonl") || in.Form.Format != "jsonl" || in.Text != text {
			t.Errorf("%s: %+v", file.Pipelines[i].Name, in)
		}
	}
	if file, _ := load(t, "-input -"+rest); file.Pipelines[0].Input.Path != "-" {
		t.Errorf("standard input became %q", file.Pipelines[0].Input.Path)
	}
}

// A file is a document if its name implies that. A text file is also a document if the knowledge
// has a chunker and does not describe rows.
func TestOneFile(t *testing.T) {
	tests := []struct {
		path, more string // of the source
		chunk      bool
		documents  bool
	}{
		{path: "a.md", documents: true},
		{path: "a.go", documents: true},
		{path: "a.txt"},
		{path: "a.txt", chunk: true, documents: true},
		{path: "a.txt", chunk: true, more: `exclude = ["*.png"]`, documents: true},
		{path: "a.txt", chunk: true, more: `format = "tsv"`},
		{path: "a.txt", chunk: true, more: `text = "body"`},
		{path: "README", chunk: true, documents: true},
		{path: "a.tsv", chunk: true},
		{path: "a.JSONL", chunk: true},
	}
	for _, test := range tests {
		t.Run(test.path+" "+test.more, func(t *testing.T) {
			chunk := ""
			if test.chunk {
				chunk = `chunk { use = "sentences" }`
			}
			file, root := load(t, `
-- p.hcl --
knowledge "k" {
  source {
    path = "`+test.path+`"
    `+test.more+`
  }
  `+chunk+`
  embed { use = "hashing" }
  store { use = "local" }
}
pipeline "p" {
  retrieve "r" { from = knowledge.k }
}
-- `+test.path+` --
text
`)
			s := file.Knowledge[0].Sources[0]
			if (s.Documents != nil) != test.documents || test.documents && (s.Documents.Path != filepath.Join(root, test.path) || s.Text != "") {
				t.Errorf("source %+v", s)
			}
		})
	}
}

func TestOrder(t *testing.T) {
	file, _ := load(t, orderFile)
	needs := map[string][][]int{
		"all":      {nil, nil, {1}, {1}, {1}, {1, 2, 3}, {2, 3, 5}, {1}, {1, 2, 3, 6}},
		"no-model": {nil, {0}, nil, {0}},
		"two":      {nil, nil, {1}, {2}},
	}
	unused := map[string][]int{"all": {4}, "no-model": {1}}
	for _, p := range file.Pipelines {
		for i, s := range p.Stages {
			if used := !slices.Contains(unused[p.Name], i); p.Used(i) != used {
				t.Errorf("%s: %s %s: Used %v", p.Name, s.Block, s.Name, !used)
			}
			if !s.Enabled || !p.Used(i) {
				continue
			}
			if d := cmp.Diff(needs[p.Name][i], p.Needs(i)); d != "" {
				t.Errorf("%s: what %s %s needs (-want +got):\n%s", p.Name, s.Block, s.Name, d)
			}
		}
	}
}

const orderFile = `
-- p.hcl --
` + hashed + `
pipeline "all" {
  prompt "off" {                                      # 0
    use     = "completion"
    enabled = false
  }
  retrieve "r" { from = knowledge.k }                 # 1
  sample "knn" { use = "neighbours" }                 # 2
  sample "prototype" { use = "prototype" }            # 3
  prompt "overruled" { use = "completion" }           # 4
  prompt "shots" {                                    # 5
    use  = "completion"
    when = "agreement < 0.9"
  }
  sample "llm" {                                      # 6
    use  = "openai"
    when = "margin < 0.1"
    config { model = "m" }
  }
  sample "none" {                                     # 7
    use     = "prototype"
    enabled = false
  }
  elect "e" {                                         # 8
    use    = "soft"
    accept = "answer in labels"
  }
}
pipeline "no-model" {
  retrieve "r" { from = knowledge.k }
  prompt "shots" { use = "completion" }
  sample "llm" {
    use     = "openai"
    enabled = false
    config { model = "m" }
  }
  sample "second" {
    use = "prototype"
    fallback "late" {
      when = "failed and len(votes) == 0"
    }
  }
}
pipeline "two" {
  retrieve "a" { from = knowledge.k }
  retrieve "b" {
    from = knowledge.k
    keep = "label in candidate_labels"
  }
  retrieve "c" {
    from = knowledge.k
    when = "len(candidates) == 0"
  }
  sample "knn" { use = "neighbours" }
}
`

func TestPathsFromARelativeFolder(t *testing.T) {
	file, diags := parse(t, []byte(`
variable "x" {
  type    = path
  default = "data/x.tsv"
}`), "sub/p.hcl", Options{Dir: ".", Catalog: stages()})
	want, err := filepath.Abs("sub/data/x.tsv")
	must.Do(t, err)
	if diags.HasErrors() || file.Variables[0].Value != want {
		t.Errorf("got %+v, %v, want %s", file.Variables, diags, want)
	}
}

func TestValuesFromTheCommandLine(t *testing.T) {
	for _, tt := range []struct{ decl, text, want string }{
		{`type = list(string)`, `a, b`, "a, b"},
		{`type = list(string)`, `["a,b", "c"]`, "a,b, c"},
		{`type = list(string)`, ``, ""},
		{`type = number`, `0.5`, "0.5"},
		{`default = 3`, `1e3`, "1000"},
		{`default = true`, `false`, "false"},
		{`type = path`, `-`, "-"},
		{`type = path`, ``, ""},
		{`type = path`, `/a/b`, "/a/b"},
		{`type = string`, `007`, "007"},
	} {
		src := "variable \"x\" { " + tt.decl + " }\n"
		file, diags := parse(t, []byte(src), "p.hcl", Options{Vars: map[string]string{"x": tt.text}, Catalog: stages()})
		if diags.HasErrors() || file.Variables[0].Value != tt.want {
			t.Errorf("%s of %q: got %q, %v", tt.decl, tt.text, file.Variables[0].Value, diags)
		}
	}
	_, diags := parse(t, []byte(`variable "x" { type = list(string) }`), "p.hcl", Options{Vars: map[string]string{"x": `["a`}, Catalog: stages()})
	if !diags.HasErrors() {
		t.Error("a broken list is accepted")
	}
}

func TestFormat(t *testing.T) {
	got := string(bounded.Format([]byte("pipeline \"p\" {\nbatch=3\n  input {path=\"x\"}\n}\n")))
	if want := "pipeline \"p\" {\n  batch = 3\n  input { path = \"x\" }\n}\n"; got != want {
		t.Errorf("got\n%s", got)
	}
}

// FuzzLoad checks that no file makes Load panic or use many resources, and that every diagnostic
// points into the file.
func FuzzLoad(f *testing.F) {
	names, err := filepath.Glob("testdata/*.txtar")
	must.Do(f, err)
	for _, name := range names {
		a, err := txtar.ParseFile(name)
		must.Do(f, err)
		f.Add(string(a.Files[0].Data))
	}
	f.Add(string(txtar.Parse([]byte(intent)).Files[0].Data))
	dir := f.TempDir()
	if flag.Lookup("test.fuzz").Value.String() != "" { // TestHostileFiles loads the files unchanged
		for _, src := range hostile() {
			if len(src) < 10_000 { // the fuzzer mutates short files best
				f.Add(src)
			}
		}
	}
	f.Fuzz(func(t *testing.T, src string) {
		before := allocated()
		defer func() {
			if n := allocated() - before; n > 2*maxAllocated {
				t.Errorf("%d MB allocated", n>>20)
			}
		}()
		file, diags := parse(t, []byte(src), "p.hcl", Options{Dir: dir, Catalog: stages()})
		expectUsable(t, src, file, diags)
	})
}

// expectUsable fails a test if a diagnostic points outside of the file. It also calls Needs for the
// stages, which must not panic.
func expectUsable(t *testing.T, src string, file *File, diags hcl.Diagnostics) {
	t.Helper()
	for _, d := range diags {
		if d.Subject != nil && (d.Subject.End.Byte > len(src) || d.Subject.Start.Byte > d.Subject.End.Byte) {
			t.Errorf("%v points outside of the file", d)
		}
	}
	for _, p := range file.Pipelines {
		for i := range p.Stages {
			p.Needs(i)
		}
	}
}

func TestAttached(t *testing.T) {
	file, _ := load(t, `-var name=docs
-- p.hcl --
variable "name" { default = "" }
knowledge "attached" {
  embed { use = "minilm" }
  store {
    use = "shared"
    config {
      collection = var.name
      fields {
        text = "content"
        meta = ["lang", "year"]
      }
    }
  }
}
knowledge "built" {
  source { path = "-" }
  embed { use = "minilm" }
  store { use = "shared" }
}
pipeline "p" {
  retrieve "r" {
    from   = knowledge.attached
    filter = "meta.year > 2020" # its fields have types of their own
  }
}
`)
	attached, built := file.Knowledge[0], file.Knowledge[1]
	if !attached.Attached() || attached.Collection() != "docs" || attached.Sources != nil || attached.Main().Path != "" {
		t.Errorf("attached: %+v", attached)
	}
	if want, got := `{"collection":"docs","fields":{"meta":["lang","year"],"text":"content"}}`, string(attached.Store.Config.Open); got != want {
		t.Errorf("config %s, want %s", got, want)
	}
	if built.Attached() || built.Collection() != "" {
		t.Errorf("built: %+v", built)
	}
}

func TestHangTime(t *testing.T) {
	for want, s := range map[time.Duration]*Stage{
		time.Second:      {Timeout: time.Second, Info: sdk.Stage{Network: true}},
		2 * time.Hour:    {Info: sdk.Stage{Network: true}},
		20 * time.Minute: {Kind: sdk.KindSample},
		2 * time.Minute:  {Kind: sdk.KindPrompt},
	} {
		if got := s.HangTime(); got != want {
			t.Errorf("%+v may hang for %s, want %s", s.Info, got, want)
		}
	}
}
