package enrich

import (
	"context"
	_ "embed"

	"github.com/racflow/racflow/plugins/internal/chatmodel"
	"github.com/racflow/racflow/sdk"
)

// This file is an enricher that lets a language model write keywords for each passage. These are n words or short
// phrases that people may search for if they want the passage, including some that the passage does not use.
// expand.go does the work.
//
// The messages are written with system.tmpl and prompt.tmpl, Go text/templates with the
// fields of expandData; files named in the config replace them.

type keywordsConfig struct {
	ExpandConfig
	N int `config:"n" default:"5" min:"1" max:"50" doc:"How many keywords a passage gets, at most."`
}

//go:embed keywords.system.tmpl
var keywordsSystem string

//go:embed keywords.prompt.tmpl
var keywordsPrompt string

func keywordsKind() expansion {
	return expansion{Name: "keywords", System: keywordsSystem, Prompt: keywordsPrompt, Tokens: 16, Characters: 80}
}

// Keywords describes the enricher.
func Keywords() sdk.Stage {
	return sdk.EnrichStage("keywords", "Has a language model name keywords of each passage.", openKeywords, sdk.Revision(expandRevision), sdk.Network(), sdk.Addresses(keywordsConfig.Addresses), sdk.PreferBatch(1), sdk.PendsIf(chatmodel.BatchArgument),
		sdk.Validates(func(c keywordsConfig) error { return checkExpansion(keywordsKind(), c.ExpandConfig, c.N) }))
}

func openKeywords(_ context.Context, setup sdk.Setup, c keywordsConfig) (sdk.Enricher, error) {
	return New(keywordsKind(), c.ExpandConfig, c.N, setup)
}
