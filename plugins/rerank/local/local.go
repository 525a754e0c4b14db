package local

import (
	"context"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/analyze"
)

// Weights are bounded so that scores stay finite.
type config struct {
	Dense     float64  `config:"dense" default:"1" min:"0" max:"1000" doc:"Weight of the cosine, from the lowest to the highest among the candidates."`
	Lexical   float64  `config:"lexical" default:"0.5" min:"0" max:"1000" doc:"Weight of the BM25 score, divided by the highest."`
	Words     float64  `config:"words" default:"1" min:"0" max:"1000" doc:"Weight of the share of the item's words that the text has."`
	Phrases   float64  `config:"phrases" default:"0.5" min:"0" max:"1000" doc:"Weight of the share of its pairs of words that stand together there."`
	Fields    float64  `config:"fields" default:"1" min:"0" max:"1000" doc:"Weight of the share of its words that the context, the terms added to it and the metadata in field_names have."`
	Names     []string `config:"field_names" default:"title,path,headings" pattern:"." doc:"Keys of the metadata that count as fields."`
	Diversity float64  `config:"diversity" default:"0.5" min:"0" max:"1000" doc:"Weight of the overlap with a better candidate, which is subtracted; 0: off."`
}

// Stage describes the reranker.
func Stage() sdk.Stage {
	return sdk.RerankStage("local", "Reranks without a model: by cosine, BM25, the item's words in text and fields, and diversity.",
		open, sdk.Revision("1"), sdk.Reads(sdk.ColumnCandidateTexts))
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
	all, sets, words := featuresOf(r.analyzer, item, r.Names)
	relevance := make([]float64, len(all))
	for i, f := range all {
		relevance[i] = r.Dense*f.dense + r.Lexical*f.lexical + r.Words*f.words + r.Phrases*f.pairs + r.Fields*f.fields
	}
	order, values := diverse(relevance, sets, words, r.Diversity)
	ranked := make([]sdk.Ranked, len(order))
	for i, n := range order {
		ranked[i] = sdk.Ranked{Candidate: n, Score: float32(values[i])}
	}
	return ranked
}
