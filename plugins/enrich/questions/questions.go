package questions

import (
	"context"
	_ "embed"

	"github.com/racflow/racflow/plugins/internal/terms"
	"github.com/racflow/racflow/sdk"
)

type config struct {
	terms.Config
	N int `config:"n" default:"3" min:"1" max:"50" doc:"How many questions a passage gets, at most."`
}

//go:embed system.tmpl
var system string

//go:embed prompt.tmpl
var prompt string

func kind() terms.Kind {
	return terms.Kind{Name: "questions", System: system, Prompt: prompt, Sentences: true, Tokens: 60, Characters: 300}
}

// Stage describes the enricher.
func Stage() sdk.Stage {
	return sdk.EnrichStage("questions", "Has a language model ask questions that each passage answers.", open, sdk.Revision(terms.Revision), sdk.Network(), sdk.PreferBatch(1),
		sdk.Validates(func(c config) error { return terms.Check(kind(), c.Config, c.N) }))
}

func open(_ context.Context, setup sdk.Setup, c config) (sdk.Enricher, error) {
	return terms.New(kind(), c.Config, c.N, setup)
}
