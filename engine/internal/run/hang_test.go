package run_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/runtest"
	"github.com/racflow/racflow/sdk"
)

// hanging stages answer no call with a text that says hang.
type hanging struct{}

func (hanging) wait(ctx context.Context, text string) error {
	if strings.Contains(text, "hang") {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (hanging) Dimension() int { return 2 }

func (h hanging) Embed(ctx context.Context, _ sdk.Role, texts []string) ([][]float32, error) {
	all := make([][]float32, len(texts))
	for i, text := range texts {
		if err := h.wait(ctx, text); err != nil {
			return nil, err
		}
		all[i] = []float32{.6, .8}
	}
	return all, nil
}

func (h hanging) Chunk(ctx context.Context, documents []sdk.Document) ([][]sdk.Chunk, error) {
	all := make([][]sdk.Chunk, len(documents))
	for i, d := range documents {
		if err := h.wait(ctx, d.Text); err != nil {
			return nil, err
		}
		all[i] = []sdk.Chunk{{End: len(d.Text)}}
	}
	return all, nil
}

func (h hanging) Enrich(ctx context.Context, passages []sdk.Passage) ([]sdk.Addition, error) {
	all := make([]sdk.Addition, len(passages))
	for i, p := range passages {
		if err := h.wait(ctx, p.Text()); err != nil {
			return nil, err
		}
		all[i] = sdk.Addition{Context: "of " + p.Document.ID}
	}
	return all, nil
}

func (h hanging) catalog() enginetest.Catalog {
	return runtest.Stages(
		sdk.EmbedStage("hanging", "Embeds.", func(context.Context, sdk.Setup, struct{}) (sdk.Embedder, error) { return h, nil }),
		sdk.ChunkStage("hanging", "Cuts.", func(context.Context, sdk.Setup, struct{}) (sdk.Chunker, error) { return h, nil }),
		sdk.EnrichStage("hanging", "Adds.", func(context.Context, sdk.Setup, struct{}) (sdk.Enricher, error) { return h, nil }),
	)
}

// A row that hangs in a build is left out alone, whichever stage it is that hangs.
func TestARowThatHangs(t *testing.T) {
	const embed = `embed { use = "hashing" }`
	for name, c := range map[string]struct {
		with  string // in the place of embed
		left  int    // rows left out
		bare  int    // rows without an addition
		fault string
	}{
		"embed": {`embed { use = "hanging" }`, 1, 0, "hang.tsv:78: no answer within 1m0s, its share of timeout"},
		"chunk": {`chunk { use = "hanging" }
` + embed, 1, 0, "hang.tsv:78: cut into chunks: no answer within 1m0s, its share of timeout"},
		"enrich": {`enrich "mine" {
			use = "hanging"
			lexical = true
		}
		` + embed, 0, 1, "hang.tsv:78: enrich.mine: no answer within 1m0s, its share of timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				var r knowledge.BuildReport
				runtest.PipelineWith(t, hanging{}.catalog(), run.Options{Knowledge: func(got knowledge.BuildReport) { r = got }}, `
					retrieve "near" { from = knowledge.k }`, embed, c.with, "rows.tsv", "hang.tsv")
				if r.Entries != 200-c.left || r.InvalidCount != c.left || r.Unenriched != c.bare {
					t.Fatalf("got %+v", r)
				}
				fault := r.FirstUnenriched
				if c.left > 0 {
					fault = r.Invalid[0]
				}
				if !strings.Contains(fault.String(), c.fault) {
					t.Errorf("got %q, want %q", fault, c.fault)
				}
				if took := time.Since(start); took > 2*time.Minute {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// A pipeline that nobody asks for hours, answers then.
func TestARestOfHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runtest.Pipeline(t, runtest.Stages(), `
			retrieve "near" { from = knowledge.k }
			sample "knn" { use = "neighbours" }
			elect "e" { use = "soft" }`)
		runtest.Want(t, runtest.Answers(t, r, "an apple"), "fruit")
		time.Sleep(5 * time.Hour)
		runtest.Want(t, runtest.Answers(t, r, "a car"), "vehicle")
	})
}
