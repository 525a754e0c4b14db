package pipeline

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/engine/internal/source/document"
	"github.com/racflow/racflow/sdk"
)

// undecided names the fields without a decision whether results depend on them, and the fields that
// count but have no digest. It visits a struct and everything that its counting fields reach.
func undecided(root reflect.Type) []string {
	var all []string
	seen := map[reflect.Type]bool{}
	var visit func(t reflect.Type, at string, whole bool)
	visit = func(t reflect.Type, at string, whole bool) {
		switch {
		case t.Implements(expressionType), t == rawType:
			return
		case t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array:
			visit(t.Elem(), at, whole)
			return
		case t.Kind() != reflect.Struct:
			if !slices.Contains([]reflect.Kind{reflect.String, reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64}, t.Kind()) {
				all = append(all, at+" has no digest")
			}
			return
		case seen[t]:
			return
		}
		seen[t] = true
		for i := range t.NumField() {
			f := t.Field(i)
			tag, ok := tagOf(f)
			name := fmt.Sprintf("%s.%s", t, f.Name)
			switch {
			case whole && f.IsExported():
				visit(f.Type, name, true)
			case !ok || tag.reason == "" && !f.IsExported():
				all = append(all, name)
			case tag.reason == "":
				visit(f.Type, name, tag.whole)
			}
		}
	}
	visit(root, root.String(), false)
	return all
}

func TestEveryFieldIsDecidedOn(t *testing.T) {
	for _, root := range []reflect.Type{reflect.TypeFor[Pipeline](), reflect.TypeFor[Knowledge]()} {
		for _, field := range undecided(root) {
			t.Errorf("%s: say by an identity tag whether results depend on it; see package identity", field)
		}
	}
}

type inner struct {
	In, New string
}

type fake struct {
	In         string          `identity:"run"`
	Raw        json.RawMessage `identity:"run"`
	Out        func()          `identity:"-,a function"`
	New        int
	Reasonless int      `identity:"-,"`
	Misspelt   int      `identity:"runs"`
	hidden     int      `identity:"run"`
	Function   func()   `identity:"run"`
	Several    []*inner `identity:"run"`
	Whole      wrapped  `identity:"run,whole"`
	Again      *fake    `identity:"run"`
}

type wrapped struct {
	A []string
	B map[string]int
	c chan int
}

// TestUndecided checks that undecided names the fields with a missing or wrong identity tag, and the
// fields without a digest.
func TestUndecided(t *testing.T) {
	_ = fake{hidden: 0, Whole: wrapped{c: nil}}
	want := []string{
		"pipeline.fake.New", "pipeline.fake.Reasonless", "pipeline.fake.Misspelt", "pipeline.fake.hidden", "pipeline.fake.Function has no digest",
		"pipeline.inner.In", "pipeline.inner.New", "pipeline.wrapped.B has no digest", "pipeline.wrapped.c",
	}
	if diff := cmp.Diff(want, undecided(reflect.TypeFor[fake]())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A field without a decision does not count as excluded.
func TestReaderRefusesWhatIsUndecided(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an undecided field was read over")
		}
	}()
	newReader("run").value(&inner{})
}

// file is a checked pipeline that a test changes.
type file struct {
	vars map[string]cty.Value
	p    *Pipeline
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

// TestParts makes one change to a pipeline at a time. A change that affects answers changes the
// digest of the named part.
func TestParts(t *testing.T) {
	parts := func(vars map[string]cty.Value, change func(*file)) map[string]string {
		f := &file{vars: map[string]cty.Value{
			"doubt": cty.NumberFloatVal(.1), "n": cty.NumberIntVal(6), "e": cty.StringVal("x"), "langs": list("a, b"), "unread": cty.True,
		}}
		maps.Copy(f.vars, vars)
		k := &Knowledge{Name: "k", Store: &Stage{Block: "store", Use: "local", Config: Config{Identity: []byte(`{"k1":1.2}`)}}}
		f.p = &Pipeline{Name: "p", Input: &Source{Text: "text"}, Stages: []*Stage{
			{Block: "retrieve", Name: "near", Enabled: true, Retrieve: &Retrieve{
				From: k, Ranking: sdk.Ranking{TopK: 5}, Whole: f.rule(t, rule.Whole, "knowledge.entries < 10"), Filter: f.filter(t, "meta.lang in var.langs"),
			}, Fallbacks: []Fallback{{
				Name: "other", When: f.rule(t, rule.Fallback, "failed"),
				Stage: &Stage{Block: "retrieve", Name: "near", Retrieve: &Retrieve{From: k}},
			}}},
			{Block: "sample", Name: "llm", Use: "openai", Enabled: true, N: 2, When: f.rule(t, rule.When, "margin < var.doubt"), Config: Config{Identity: []byte(`{"model":"a"}`)}},
			{Block: "elect", Name: "e", Use: "soft", Enabled: true, Flag: f.rule(t, rule.Flag, "agreement < 0.4")},
		}}
		change(f)
		return PartDigests(f.p)
	}
	nothing := func(*file) {}
	before := parts(nil, nothing)
	stage := func(i int, change func(*Stage)) func(*file) {
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
		"no effect":    {nil, stage(1, func(s *Stage) { s.Config.Public = []byte(`{"timeout":"9s"}`) }), nil},
		"retries":      {nil, stage(1, func(s *Stage) { s.Retries, s.Timeout, s.Workers, s.Memory = 9, time.Second, 3, 1<<30 }), nil},
		"price, limit": {nil, stage(1, func(s *Stage) { s.Price, s.Limit = &Price{Input: 1}, &Limit{Requests: 1} }), nil},
		"position":     {nil, stage(1, func(s *Stage) { s.Range.Start.Line = 7 }), nil},
		"input path":   {nil, func(f *file) { f.p.Input.Path = "other.tsv" }, nil},

		"unread variable":               {map[string]cty.Value{"unread": cty.False}, nothing, nil},
		"variable that is a letter":     {map[string]cty.Value{"n": cty.NumberIntVal(7)}, nothing, nil},
		"variable as a stage is called": {map[string]cty.Value{"e": cty.StringVal("y")}, nothing, nil},
		"variable of a rule":            {map[string]cty.Value{"doubt": cty.NumberFloatVal(.2)}, nothing, []string{"var.doubt"}},
		"variable of a filter":          {map[string]cty.Value{"langs": list("a", "b")}, nothing, []string{"var.langs"}},

		"config":         {nil, stage(1, func(s *Stage) { s.Config.Identity = []byte(`{"model":"b"}`) }), []string{"sample.llm"}},
		"samples":        {nil, stage(1, func(s *Stage) { s.N = 3 }), []string{"sample.llm"}},
		"resamples":      {nil, stage(1, func(s *Stage) { s.Resamples = 3 }), []string{"sample.llm"}},
		"on_error":       {nil, stage(1, func(s *Stage) { s.OnError = SkipItem }), []string{"sample.llm"}},
		"top_k":          {nil, stage(0, func(s *Stage) { s.Retrieve.Ranking.TopK = 6 }), []string{"retrieve.near"}},
		"num_candidates": {nil, stage(0, func(s *Stage) { s.Retrieve.Ranking.NumCandidates = 6 }), []string{"retrieve.near"}},
		"store":          {nil, stage(0, func(s *Stage) { s.Retrieve.From.Store.Config.Identity = []byte(`{"k1":2}`) }), []string{"the store of knowledge.k"}},
		"use":            {nil, stage(2, func(s *Stage) { s.Use = "majority" }), []string{"elect.e"}},
		"input column":   {nil, func(f *file) { f.p.Input.Text = "query" }, []string{"the columns of the input"}},
		"no metadata":    {nil, func(f *file) { f.p.Input.Meta = []string{} }, []string{"the columns of the input"}},
		"flag":           {nil, func(f *file) { f.p.Stages[2].Flag = f.rule(t, rule.Flag, "agreement < 0.6") }, []string{"elect.e"}},
		"whole": {nil, func(f *file) {
			f.p.Stages[0].Retrieve.Whole = f.rule(t, rule.Whole, "knowledge.entries < 11")
		}, []string{"retrieve.near"}},
		"fallback": {nil, func(f *file) {
			f.p.Stages[0].Fallbacks[0].When = f.rule(t, rule.Fallback, "failed or len(candidates) == 0")
		}, []string{"retrieve.near"}},
		"in a fallback": {nil, stage(0, func(s *Stage) { s.Fallbacks[0].Stage.Retrieve.Ranking.TopK = 9 }), []string{"retrieve.near"}},
		"off":           {nil, stage(2, func(s *Stage) { s.Enabled = false }), []string{"elect.e", "the order of the stages"}},
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

// TestBlock makes one change to a knowledge at a time. A change that affects entries changes the
// digest.
func TestBlock(t *testing.T) {
	block := func() *Knowledge {
		return &Knowledge{
			Name: "k", Analyzer: "standard",
			Sources: []Source{{Path: "/docs", Documents: &document.Set{Path: "/docs"}}},
			Chunk:   &Stage{Block: "chunk", Use: "markdown"},
			Enrich:  []*Stage{{Block: "enrich", Name: "where", Use: "path", Enabled: true, Embedded: true}, {Block: "enrich", Name: "off", Use: "keywords"}},
			Embed:   &Stage{Block: "embed", Use: "hashing", Config: Config{Identity: []byte(`{"dimension":8}`)}},
			Store:   &Stage{Block: "store", Use: "local"},
		}
	}
	before := KnowledgeDigest(block())
	for name, change := range map[string]func(*Knowledge){
		"path": func(k *Knowledge) { k.Sources[0].Path = "/other" },
		"a second source": func(k *Knowledge) {
			k.Sources = append(k.Sources, Source{Path: "/more"})
		},
		"decisions": func(k *Knowledge) {
			k.Sources = append(k.Sources, Source{Path: "/reviewed.jsonl", Reviewed: true})
		},
		"column":   func(k *Knowledge) { k.Sources[0].Context = "title" },
		"exclude":  func(k *Knowledge) { k.Sources[0].Documents.Exclude = []string{"*.txt"} },
		"chunker":  func(k *Knowledge) { k.Chunk.Use = "sentences" },
		"no chunk": func(k *Knowledge) { k.Chunk = nil },
		"config":   func(k *Knowledge) { k.Embed.Config.Identity = []byte(`{"dimension":9}`) },
		"analyzer": func(k *Knowledge) { k.Analyzer = "code" },
		"embedded": func(k *Knowledge) { k.Enrich[0].Embedded = false },
		"renamed":  func(k *Knowledge) { k.Enrich[0].Name = "at" },
		"on":       func(k *Knowledge) { k.Enrich[1].Enabled = true },
	} {
		k := block()
		if change(k); KnowledgeDigest(k) == before {
			t.Errorf("%s: the digest is the same", name)
		}
	}
	for name, change := range map[string]func(*Knowledge){
		"name":  func(k *Knowledge) { k.Name = "other" },
		"store": func(k *Knowledge) { k.Store.Use = "milvus" },
		"calls": func(k *Knowledge) {
			k.Embed.Batch, k.Embed.Workers, k.Embed.Retries, k.Embed.Memory = 1, 2, 3, 1<<30
		},
		"off": func(k *Knowledge) { k.Enrich[1].Use = "questions" },
	} {
		k := block()
		if change(k); KnowledgeDigest(k) != before {
			t.Errorf("%s: the digest differs", name)
		}
	}
	// Names of collections contain the digest. Without this test, a new name for a field would
	// rebuild all knowledge.
	if want := "fd9d4c61b8d08b314d625168ca907271"; before != want {
		t.Errorf("the digest of the same block is %s, was %s: raise layout in package knowledge", before, want)
	}
}
