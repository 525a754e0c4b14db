package local

import (
	"context"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/analyze"
)

// Weights are bounded so that scores stay finite. Their defaults are those that
// TestCrossValidated chooses on all sets.
type config struct {
	Phrases   float64  `config:"phrases" default:"0.75" min:"0" max:"1000" doc:"Weight of the share of the item's pairs of words that stand together in the text. The candidates' scores, from the lowest to the highest, have the weight 1."`
	Fields    float64  `config:"fields" default:"1" min:"0" max:"1000" doc:"Weight of the share of its words that the context, the terms added to it and the metadata in field_names have."`
	Names     []string `config:"field_names" default:"title,path,headings" pattern:"." doc:"Keys of the metadata that count as fields."`
	Diversity float64  `config:"diversity" default:"1" min:"0" max:"1000" doc:"What is subtracted from the score of a text that has the same words as a better candidate; less from one that shares more than half of them; 0: off."`
}

// Stage describes the reranker.
func Stage() sdk.Stage {
	return sdk.RerankStage("local", "Reranks without a model: by the search's score, the item's phrases, its words in fields, and diversity.",
		open, sdk.Revision("2"), sdk.Reads(sdk.ColumnCandidateTexts))
}

func open(_ context.Context, _ sdk.Setup, c config) (sdk.Reranker, error) {
	a, err := analyze.Named("code")
	return &reranker{config: c, analyzer: a}, err
}

type reranker struct {
	config
	analyzer analyze.Analyzer
}

// Rerank implements sdk.Reranker.
func (r *reranker) Rerank(ctx context.Context, b sdk.Batch) ([][]sdk.Ranked, error) {
	out := make([][]sdk.Ranked, len(b.Items))
	for i := range b.Items {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		out[i] = r.rank(&b.Items[i])
	}
	return out, nil
}

// rank returns all candidates of an item, best first.
func (r *reranker) rank(item *sdk.Item) []sdk.Ranked {
	return read(r.analyzer, item, r.Names).order(r.Phrases, r.Fields, copied, r.Diversity)
}

// order returns all candidates, best first.
func (l list) order(phrases, fields, copied, diversity float64) []sdk.Ranked {
	relevance := make([]float64, len(l.features))
	for i, f := range l.features {
		relevance[i] = f.score + phrases*f.phrases + fields*f.fields
	}
	order, values := diverse(relevance, l.sets, l.words, copied, diversity)
	ranked := make([]sdk.Ranked, len(order))
	for i, n := range order {
		ranked[i] = sdk.Ranked{Candidate: n, Score: float32(values[i])}
	}
	return ranked
}
