package enrich

import (
	"context"
	_ "embed"

	"github.com/racflow/racflow/plugins/internal/chatmodel"
	"github.com/racflow/racflow/sdk"
)

// This file is an enricher that lets a language model write n questions that each passage answers, in the words of
// people who do not know the passage yet. Real questions are more similar to such a question than to the text that
// answers them. The method is doc2query (Nogueira et al., "Document Expansion by Query Prediction", 2019) with an
// instructed model. expand.go does the work.
//
// The messages are written with system.tmpl and prompt.tmpl, Go text/templates with the
// fields of expandData; files named in the config replace them.

type questionsConfig struct {
	ExpandConfig
	N int `config:"n" default:"3" min:"1" max:"50" doc:"How many questions a passage gets, at most."`
}

//go:embed questions.system.tmpl
var questionsSystem string

//go:embed questions.prompt.tmpl
var questionsPrompt string

func questionsKind() expansion {
	return expansion{Name: "questions", System: questionsSystem, Prompt: questionsPrompt, Sentences: true, Tokens: 60, Characters: 300}
}

// Questions describes the enricher.
func Questions() sdk.Stage {
	return sdk.EnrichStage("questions", "Has a language model ask questions that each passage answers.", openQuestions, sdk.Revision(expandRevision), sdk.Network(), sdk.Addresses(questionsConfig.Addresses), sdk.PreferBatch(1), sdk.PendsIf(chatmodel.BatchArgument),
		sdk.Validates(func(c questionsConfig) error { return checkExpansion(questionsKind(), c.ExpandConfig, c.N) }))
}

func openQuestions(_ context.Context, setup sdk.Setup, c questionsConfig) (sdk.Enricher, error) {
	return New(questionsKind(), c.ExpandConfig, c.N, setup)
}
