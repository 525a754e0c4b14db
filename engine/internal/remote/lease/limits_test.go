package lease

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
)

func TestLimitsOf(t *testing.T) {
	api, slow, off := &pipeline.Limit{Name: "api", Concurrency: 64, Tokens: 200000}, &pipeline.Limit{Name: "slow", Concurrency: 2, Requests: 3, Shared: "team"}, &pipeline.Limit{Name: "off"}
	knowledge := &pipeline.Knowledge{Embed: &pipeline.Stage{Enabled: true, Limit: slow}, Store: &pipeline.Stage{Enabled: true}}
	p := &pipeline.Pipeline{Budget: pipeline.Budget{Cost: 5, Tokens: 7}, Stages: []*pipeline.Stage{
		{Enabled: true, Retrieve: &pipeline.Retrieve{From: knowledge}},
		{Enabled: true, Limit: api}, {Enabled: true, Limit: api}, {Enabled: true}, {Limit: off},
	}}
	want := Limits{
		Blocks: []pipeline.Limit{{Name: "api", Concurrency: 64, Tokens: 200000}, {Name: "slow", Concurrency: 2, Requests: 3, Shared: "team"}},
		Budget: Amount{Cost: 3, Tokens: 7},
	}
	got := LimitsOf(p, pipeline.Budget{Cost: 3})
	data, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var back Limits
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got) + cmp.Diff(got, back); diff != "" {
		t.Error(diff)
	}
}
