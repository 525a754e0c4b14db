package eval

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/sdk"
)

func TestParts(t *testing.T) {
	search := func(name string, mode sdk.Mode, enabled bool) *pipeline.Stage {
		r := &pipeline.Retrieve{From: &pipeline.Knowledge{}}
		r.Ranking.Mode = mode
		return &pipeline.Stage{Block: "retrieve", Name: name, Enabled: enabled, Retrieve: r}
	}
	docs := &pipeline.Knowledge{Enrich: []*pipeline.Stage{
		{Block: "enrich", Name: "place", Enabled: true}, {Block: "enrich", Name: "off"}, {Block: "enrich", Name: "contextualize", Enabled: true},
	}}
	p := &pipeline.Pipeline{Stages: []*pipeline.Stage{
		search("both", sdk.ModeHybrid, true), search("words", sdk.ModeLexical, true), search("off", sdk.ModeHybrid, false),
		{Block: "rerank", Name: "best", Kind: sdk.KindRerank, Enabled: true},
		{Block: "rerank", Name: "off", Kind: sdk.KindRerank},
		{Block: "rerank", Name: "last", Kind: sdk.KindRerank, Enabled: true},
	}}
	p.Stages[0].Retrieve.From = docs
	want := map[string][]string{
		"enrich":  {"enrich.place.enabled=false", "enrich.contextualize.enabled=false"},
		"dense":   {"retrieve.both.mode=lexical"},
		"lexical": {"retrieve.both.mode=dense"},
		"rerank":  {"rerank.best.enabled=false", "rerank.last.enabled=false"},
	}
	got := map[string][]string{}
	for _, part := range Parts {
		for _, o := range withoutPart(p, part) {
			got[part] = append(got[part], o.String())
		}
		if rest := withoutPart(&pipeline.Pipeline{Stages: p.Stages[1:2]}, part); rest != nil {
			t.Errorf("%s of a search for words alone: %v", part, rest)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
