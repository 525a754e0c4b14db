package keywords

import (
	"context"
	_ "embed"

	"github.com/racflow/racflow/plugins/internal/chatmodel"
	"github.com/racflow/racflow/plugins/internal/docexpand"
	"github.com/racflow/racflow/sdk"
)

type config struct {
	docexpand.Config
	N int `config:"n" default:"5" min:"1" max:"50" doc:"How many keywords a passage gets, at most."`
}

//go:embed system.tmpl
var system string

//go:embed prompt.tmpl
var prompt string

func kind() docexpand.Kind {
	return docexpand.Kind{Name: "keywords", System: system, Prompt: prompt, Tokens: 16, Characters: 80}
}

// Stage describes the enricher.
func Stage() sdk.Stage {
	return sdk.EnrichStage("keywords", "Has a language model name keywords of each passage.", open, sdk.Revision(docexpand.Revision), sdk.Network(), sdk.PreferBatch(1), sdk.PendsIf(chatmodel.BatchArgument),
		sdk.Validates(func(c config) error { return docexpand.Check(kind(), c.Config, c.N) }))
}

func open(_ context.Context, setup sdk.Setup, c config) (sdk.Enricher, error) {
	return docexpand.New(kind(), c.Config, c.N, setup)
}
