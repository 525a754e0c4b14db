package report

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/engine/internal/measure/plan"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestPlanModels: a plan names the models of embedders and rerankers, a folder by its last element,
// and how long a row may hang in each stage.
func TestPlanModels(t *testing.T) {
	with := func(block, name, use, config string) *pipeline.Stage {
		return &pipeline.Stage{Block: block, Kind: sdk.Kind(block), Name: name, Use: use, Enabled: true, Config: pipeline.Config{Public: []byte(config)}}
	}
	k := &pipeline.Knowledge{Name: "docs", Embed: with("embed", "", "encoder", `{"model": "bge-small-en-v1.5"}`), Store: with("store", "", "local", "{}")}
	k.Store.Timeout = 9 * time.Second
	search := with("retrieve", "near", "", "{}")
	search.Kind, search.Retrieve = "", &pipeline.Retrieve{From: k}
	what := &plan.Plan{
		File:      &pipeline.File{},
		Pipeline:  &pipeline.Pipeline{Stages: []*pipeline.Stage{search, with("rerank", "best", "cross_encoder", `{"model": "/models/mine"}`), with("rerank", "again", "local", "{}")}},
		Knowledge: []knowledge.BuildReport{{Name: "docs", Embedder: "encoder", Store: "local", Entries: 3}},
	}
	var out strings.Builder
	must.Do(t, Plan(&out, what))
	got := regexp.MustCompile(` {2,}`).ReplaceAllString(out.String(), "  ")
	for _, want := range []string{"docs  3  0  0  encoder (bge-small-en-v1.5)  local\n", "rerank.best  cross_encoder (mine)  its own", "rerank.again  local  its own"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	want := map[string]string{"embed.docs": "20m0s", "rerank.best": "20m0s", "rerank.again": "2m0s", "retrieve.near": "2m0s", "store.docs": "9s"}
	if d := cmp.Diff(want, timeouts(what.Pipeline)); d != "" {
		t.Errorf("timeouts (-want +got):\n%s", d)
	}
}
