package identity

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/engine/document"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/rule"
	"github.com/racflow/racflow/sdk"
)

// file is a checked pipeline that a test changes.
type file struct {
	vars map[string]cty.Value
	p    *pipeline.Pipeline
}

func (f *file) source(text string) (rule.Scope, rule.Source) {
	return rule.Scope{Candidates: true, Voters: true, Vars: f.vars}, rule.Source{Text: text, Range: func(int, int) hcl.Range { return hcl.Range{} }}
}

func (f *file) rule(t *testing.T, kind rule.Kind, text string) *rule.Rule {
	t.Helper()
	scope, source := f.source(text)
	r, diags := rule.Compile(kind, scope, source)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return r
}

func (f *file) filter(t *testing.T, text string) *rule.Filter {
	t.Helper()
	scope, source := f.source(text)
	r, diags := rule.CompileFilter(scope, source)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return r
}

func list(texts ...string) cty.Value {
	var all []cty.Value
	for _, t := range texts {
		all = append(all, cty.StringVal(t))
	}
	return cty.ListVal(all)
}

// TestParts changes one thing of a pipeline at a time: what answers depend on
// changes the digest of a part, which is named.
func TestParts(t *testing.T) {
	parts := func(vars map[string]cty.Value, change func(*file)) map[string]string {
		f := &file{vars: map[string]cty.Value{
			"doubt": cty.NumberFloatVal(.1), "n": cty.NumberIntVal(6), "e": cty.StringVal("x"), "langs": list("a, b"), "unread": cty.True,
		}}
		maps.Copy(f.vars, vars)
		k := &pipeline.Knowledge{Name: "k", Store: &pipeline.Stage{Block: "store", Use: "local", Config: pipeline.Config{Identity: []byte(`{"k1":1.2}`)}}}
		f.p = &pipeline.Pipeline{Name: "p", Input: &pipeline.Source{Text: "text"}, Stages: []*pipeline.Stage{
			{Block: "retrieve", Name: "near", Enabled: true, Retrieve: &pipeline.Retrieve{
				From: k, Ranking: sdk.Ranking{TopK: 5}, Whole: f.rule(t, rule.Whole, "knowledge.entries < 10"), Filter: f.filter(t, "meta.lang in var.langs"),
			}, Fallbacks: []pipeline.Fallback{{
				Name: "other", When: f.rule(t, rule.Fallback, "failed"),
				Stage: &pipeline.Stage{Block: "retrieve", Name: "near", Retrieve: &pipeline.Retrieve{From: k}},
			}}},
			{Block: "sample", Name: "llm", Use: "openai", Enabled: true, N: 2, When: f.rule(t, rule.When, "margin < var.doubt"), Config: pipeline.Config{Identity: []byte(`{"model":"a"}`)}},
			{Block: "elect", Name: "e", Use: "soft", Enabled: true, Flag: f.rule(t, rule.Flag, "agreement < 0.4")},
		}}
		change(f)
		return Parts(f.p)
	}
	nothing := func(*file) {}
	before := parts(nil, nothing)
	stage := func(i int, change func(*pipeline.Stage)) func(*file) {
		return func(f *file) { change(f.p.Stages[i]) }
	}
	tests := map[string]struct {
		vars   map[string]cty.Value
		change func(*file)
		want   []string
	}{
		"nothing":      {nil, nothing, nil},
		"batch":        {nil, func(f *file) { f.p.Batch, f.p.Stages[1].Batch = 7, 3 }, nil},
		"budget":       {nil, func(f *file) { f.p.Budget.Cost = 3 }, nil},
		"no effect":    {nil, stage(1, func(s *pipeline.Stage) { s.Config.Public = []byte(`{"timeout":"9s"}`) }), nil},
		"retries":      {nil, stage(1, func(s *pipeline.Stage) { s.Retries, s.Timeout, s.Workers, s.Memory = 9, time.Second, 3, 1<<30 }), nil},
		"price, limit": {nil, stage(1, func(s *pipeline.Stage) { s.Price, s.Limit = &pipeline.Price{Input: 1}, &pipeline.Limit{Requests: 1} }), nil},
		"position":     {nil, stage(1, func(s *pipeline.Stage) { s.Range.Start.Line = 7 }), nil},
		"input path":   {nil, func(f *file) { f.p.Input.Path = "other.tsv" }, nil},

		"unread variable":               {map[string]cty.Value{"unread": cty.False}, nothing, nil},
		"variable that is a letter":     {map[string]cty.Value{"n": cty.NumberIntVal(7)}, nothing, nil},
		"variable as a stage is called": {map[string]cty.Value{"e": cty.StringVal("y")}, nothing, nil},
		"variable of a rule":            {map[string]cty.Value{"doubt": cty.NumberFloatVal(.2)}, nothing, []string{"var.doubt"}},
		"variable of a filter":          {map[string]cty.Value{"langs": list("a", "b")}, nothing, []string{"var.langs"}},

		"config":         {nil, stage(1, func(s *pipeline.Stage) { s.Config.Identity = []byte(`{"model":"b"}`) }), []string{"sample.llm"}},
		"samples":        {nil, stage(1, func(s *pipeline.Stage) { s.N = 3 }), []string{"sample.llm"}},
		"resamples":      {nil, stage(1, func(s *pipeline.Stage) { s.Resamples = 3 }), []string{"sample.llm"}},
		"on_error":       {nil, stage(1, func(s *pipeline.Stage) { s.OnError = pipeline.SkipItem }), []string{"sample.llm"}},
		"top_k":          {nil, stage(0, func(s *pipeline.Stage) { s.Retrieve.Ranking.TopK = 6 }), []string{"retrieve.near"}},
		"num_candidates": {nil, stage(0, func(s *pipeline.Stage) { s.Retrieve.Ranking.NumCandidates = 6 }), []string{"retrieve.near"}},
		"store":          {nil, stage(0, func(s *pipeline.Stage) { s.Retrieve.From.Store.Config.Identity = []byte(`{"k1":2}`) }), []string{"the store of knowledge.k"}},
		"use":            {nil, stage(2, func(s *pipeline.Stage) { s.Use = "majority" }), []string{"elect.e"}},
		"input column":   {nil, func(f *file) { f.p.Input.Text = "query" }, []string{"the columns of the input"}},
		"no metadata":    {nil, func(f *file) { f.p.Input.Meta = []string{} }, []string{"the columns of the input"}},
		"flag":           {nil, func(f *file) { f.p.Stages[2].Flag = f.rule(t, rule.Flag, "agreement < 0.6") }, []string{"elect.e"}},
		"whole": {nil, func(f *file) {
			f.p.Stages[0].Retrieve.Whole = f.rule(t, rule.Whole, "knowledge.entries < 11")
		}, []string{"retrieve.near"}},
		"fallback": {nil, func(f *file) {
			f.p.Stages[0].Fallbacks[0].When = f.rule(t, rule.Fallback, "failed or len(candidates) == 0")
		}, []string{"retrieve.near"}},
		"in a fallback": {nil, stage(0, func(s *pipeline.Stage) { s.Fallbacks[0].Stage.Retrieve.Ranking.TopK = 9 }), []string{"retrieve.near"}},
		"off":           {nil, stage(2, func(s *pipeline.Stage) { s.Enabled = false }), []string{"elect.e", "the order of the stages"}},
		"order": {nil, func(f *file) {
			f.p.Stages[0], f.p.Stages[1] = f.p.Stages[1], f.p.Stages[0]
		}, []string{"the order of the stages"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := differing(before, parts(test.vars, test.change)); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func differing(a, b map[string]string) (keys []string) {
	all := maps.Clone(a)
	maps.Copy(all, b)
	for _, k := range slices.Sorted(maps.Keys(all)) {
		if a[k] != b[k] {
			keys = append(keys, k)
		}
	}
	return keys
}

// TestBlock changes one thing of a knowledge at a time: what its entries depend on
// changes its digest.
func TestBlock(t *testing.T) {
	block := func() *pipeline.Knowledge {
		return &pipeline.Knowledge{
			Name: "k", Analyzer: "standard",
			Sources: []pipeline.Source{{Path: "/docs", Documents: &document.Set{Path: "/docs"}}},
			Chunk:   &pipeline.Stage{Block: "chunk", Use: "markdown"},
			Enrich:  []*pipeline.Stage{{Block: "enrich", Name: "where", Use: "path", Enabled: true, Embedded: true}, {Block: "enrich", Name: "off", Use: "keywords"}},
			Embed:   &pipeline.Stage{Block: "embed", Use: "hashing", Config: pipeline.Config{Identity: []byte(`{"dimension":8}`)}},
			Store:   &pipeline.Stage{Block: "store", Use: "local"},
		}
	}
	before := Block(block())
	for name, change := range map[string]func(*pipeline.Knowledge){
		"path": func(k *pipeline.Knowledge) { k.Sources[0].Path = "/other" },
		"a second source": func(k *pipeline.Knowledge) {
			k.Sources = append(k.Sources, pipeline.Source{Path: "/more"})
		},
		"decisions": func(k *pipeline.Knowledge) {
			k.Sources = append(k.Sources, pipeline.Source{Path: "/reviewed.jsonl", Reviewed: true})
		},
		"column":   func(k *pipeline.Knowledge) { k.Sources[0].Context = "title" },
		"exclude":  func(k *pipeline.Knowledge) { k.Sources[0].Documents.Exclude = []string{"*.txt"} },
		"chunker":  func(k *pipeline.Knowledge) { k.Chunk.Use = "sentences" },
		"no chunk": func(k *pipeline.Knowledge) { k.Chunk = nil },
		"config":   func(k *pipeline.Knowledge) { k.Embed.Config.Identity = []byte(`{"dimension":9}`) },
		"analyzer": func(k *pipeline.Knowledge) { k.Analyzer = "code" },
		"embedded": func(k *pipeline.Knowledge) { k.Enrich[0].Embedded = false },
		"renamed":  func(k *pipeline.Knowledge) { k.Enrich[0].Name = "at" },
		"on":       func(k *pipeline.Knowledge) { k.Enrich[1].Enabled = true },
	} {
		k := block()
		if change(k); Block(k) == before {
			t.Errorf("%s: the digest is the same", name)
		}
	}
	for name, change := range map[string]func(*pipeline.Knowledge){
		"name":  func(k *pipeline.Knowledge) { k.Name = "other" },
		"store": func(k *pipeline.Knowledge) { k.Store.Use = "milvus" },
		"calls": func(k *pipeline.Knowledge) {
			k.Embed.Batch, k.Embed.Workers, k.Embed.Retries, k.Embed.Memory = 1, 2, 3, 1<<30
		},
		"off": func(k *pipeline.Knowledge) { k.Enrich[1].Use = "questions" },
	} {
		k := block()
		if change(k); Block(k) != before {
			t.Errorf("%s: the digest differs", name)
		}
	}
	// Names of collections hold it: without this test, a new name for a field would
	// build all knowledge again.
	if want := "fd9d4c61b8d08b314d625168ca907271"; before != want {
		t.Errorf("the digest of the same block is %s, was %s: raise layout in package knowledge", before, want)
	}
}
