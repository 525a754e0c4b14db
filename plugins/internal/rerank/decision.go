package rerank

import (
	"cmp"
	"context"
	"slices"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/decision"
	"github.com/racflow/racflow/sdk"
)

// This file is a reranker that asks a decision model (package decision). The model returns the probability that a
// passage answers the query. The query is the state, and each candidate is a yes-or-no question. A request has up to
// 64 questions: such a model reads the state once, and many questions take little longer than one.
//
// A score is a probability on the model's own scale, where one half is no meaningful limit. A keep rule needs a value
// that was measured on one's own queries. Candidates that the model refuses are left out of the ranking.

type decisionConfig struct {
	decision.Config
	Context       bool `config:"context" default:"true" doc:"Send a candidate's context before its text."`
	MaxCharacters int  `config:"max_characters" default:"2000" min:"1" doc:"The longest passage; what is beyond is cut off."`
}

// Decision describes the reranker.
func Decision() sdk.Stage {
	return sdk.RerankStage("decision", "Reranks by a decision model, which says how likely each passage answers the query.",
		openDecision, sdk.Revision("1"), sdk.Reads(sdk.ColumnCandidateTexts), sdk.Network(), sdk.Addresses(decisionConfig.Addresses), sdk.PreferBatch(1), sdk.Validates(decisionConfig.Check))
}

func openDecision(_ context.Context, setup sdk.Setup, c decisionConfig) (sdk.Reranker, error) {
	return &decisionReranker{decision.New(c.Config, setup), c}, nil
}

type decisionReranker struct {
	*decision.Model
	config decisionConfig
}

// Rerank implements sdk.Reranker.
func (r *decisionReranker) Rerank(ctx context.Context, b sdk.Batch) ([][]sdk.Ranked, error) {
	return api.Rows(ctx, b.Items, r.rank)
}

// rank returns the candidates of one item, best first.
func (r *decisionReranker) rank(ctx context.Context, item sdk.Item) ([]sdk.Ranked, error) {
	query, documents, of, err := textsOf(item, r.config.Context, r.config.MaxCharacters)
	if err != nil || len(documents) == 0 {
		return nil, err
	}
	questions := make([]decision.Question, len(documents))
	for i, text := range documents {
		questions[i].About = "Does this passage answer the query, or hold what an answer needs?\n\n" + text
	}
	reply, _, err := r.Ask(ctx, decision.State{Text: query}, questions, 1)
	if err != nil {
		return nil, err
	}
	var ranked []sdk.Ranked
	for i, a := range reply.Answers {
		if !a.Refused {
			ranked = append(ranked, sdk.Ranked{Candidate: of[i], Score: float32(a.P[0])})
		}
	}
	slices.SortStableFunc(ranked, func(a, b sdk.Ranked) int { return cmp.Compare(b.Score, a.Score) })
	return ranked, nil
}
