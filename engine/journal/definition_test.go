package journal_test

import (
	"slices"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/rule"
	"github.com/racflow/racflow/sdk"
)

// TestDefine changes one thing of a pipeline at a time: what answers depend on
// makes another definition, and is named.
func TestDefine(t *testing.T) {
	compiled := func(kind rule.Kind, text string) *rule.Rule {
		t.Helper()
		scope := rule.Scope{Candidates: true, Voters: true, Vars: map[string]cty.Value{"doubt": cty.NumberFloatVal(.1)}}
		r, diags := rule.Compile(kind, scope, rule.Source{Text: text, Range: func(int, int) hcl.Range { return hcl.Range{} }})
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		return r
	}
	define := func(change func(*pipeline.File, *pipeline.Pipeline)) (m journal.Manifest) {
		f := &pipeline.File{Variables: []pipeline.Variable{{Name: "doubt", Value: "0.1"}, {Name: "unread", Value: "1"}}}
		p := &pipeline.Pipeline{Name: "p", Input: &pipeline.Source{Text: "text"}, Stages: []*pipeline.Stage{
			{Block: "retrieve", Name: "near", Enabled: true, Retrieve: &pipeline.Retrieve{
				From: &pipeline.Knowledge{Name: "k"}, Ranking: sdk.Ranking{TopK: 5}, Whole: compiled(rule.Whole, "knowledge.entries < 10"),
			}, Fallbacks: []pipeline.Fallback{{Name: "other", When: compiled(rule.Fallback, "failed"), Stage: &pipeline.Stage{Block: "retrieve", Name: "other"}}}},
			{Block: "sample", Name: "llm", Use: "openai", Enabled: true, N: 2, When: compiled(rule.When, "margin < var.doubt"), Config: pipeline.Config{Identity: []byte(`{"model":"a"}`)}},
			{Block: "elect", Name: "e", Use: "soft", Enabled: true, Flag: compiled(rule.Flag, "agreement < 0.5")},
		}}
		f.Pipelines = append(f.Pipelines, p)
		p.Stages[0].Fallbacks[0].Stage.Retrieve = &pipeline.Retrieve{From: p.Stages[0].Retrieve.From}
		change(f, p)
		m.Define(f, p)
		return m
	}
	before := define(func(*pipeline.File, *pipeline.Pipeline) {})
	tests := map[string]struct {
		change func(*pipeline.File, *pipeline.Pipeline)
		want   []string
	}{
		"nothing":      {func(*pipeline.File, *pipeline.Pipeline) {}, nil},
		"batch":        {func(_ *pipeline.File, p *pipeline.Pipeline) { p.Batch, p.Stages[1].Batch = 7, 3 }, nil},
		"budget":       {func(_ *pipeline.File, p *pipeline.Pipeline) { p.Budget.Cost = 3 }, nil},
		"neutral":      {func(_ *pipeline.File, p *pipeline.Pipeline) { p.Stages[1].Config.Public = []byte(`{"timeout":"9s"}`) }, nil},
		"retries":      {func(_ *pipeline.File, p *pipeline.Pipeline) { p.Stages[1].Retries = 9 }, nil},
		"unread":       {func(f *pipeline.File, _ *pipeline.Pipeline) { f.Variables[1].Value = "2" }, nil},
		"doubt":        {func(f *pipeline.File, _ *pipeline.Pipeline) { f.Variables[0].Value = "0.2" }, []string{"var.doubt of the file"}},
		"config":       {func(_ *pipeline.File, p *pipeline.Pipeline) { p.Stages[1].Config.Identity = []byte(`{"model":"b"}`) }, []string{"sample.llm of the file"}},
		"samples":      {func(_ *pipeline.File, p *pipeline.Pipeline) { p.Stages[1].N = 3 }, []string{"sample.llm of the file"}},
		"top_k":        {func(_ *pipeline.File, p *pipeline.Pipeline) { p.Stages[0].Retrieve.Ranking.TopK = 6 }, []string{"retrieve.near of the file"}},
		"use":          {func(_ *pipeline.File, p *pipeline.Pipeline) { p.Stages[2].Use = "majority" }, []string{"elect.e of the file"}},
		"input column": {func(_ *pipeline.File, p *pipeline.Pipeline) { p.Input.Text = "query" }, []string{"the columns of the input of the file"}},
		"flag": {func(_ *pipeline.File, p *pipeline.Pipeline) {
			p.Stages[2].Flag = compiled(rule.Flag, "agreement < 0.6")
		}, []string{"elect.e of the file"}},
		"whole": {func(_ *pipeline.File, p *pipeline.Pipeline) {
			p.Stages[0].Retrieve.Whole = compiled(rule.Whole, "knowledge.entries < 11")
		}, []string{"retrieve.near of the file"}},
		"fallback": {func(_ *pipeline.File, p *pipeline.Pipeline) {
			p.Stages[0].Fallbacks[0].When = compiled(rule.Fallback, "failed or len(candidates) == 0")
		}, []string{"retrieve.near of the file"}},
		"off": {func(_ *pipeline.File, p *pipeline.Pipeline) { p.Stages[2].Enabled = false }, []string{"elect.e of the file", "the order of the stages of the file"}},
		"order": {func(_ *pipeline.File, p *pipeline.Pipeline) {
			p.Stages[0], p.Stages[1] = p.Stages[1], p.Stages[0]
		}, []string{"the order of the stages of the file"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			after := define(test.change)
			if got := before.Differences(after); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if same := before.Definition == after.Definition; same != (test.want == nil) {
				t.Errorf("the definitions are the same: %v", same)
			}
		})
	}
}
