package context

import (
	"context"
	_ "embed"
	"errors"

	"github.com/racflow/racflow/plugins/internal/chatmodel"
	"github.com/racflow/racflow/plugins/internal/fewshot"
	"github.com/racflow/racflow/sdk"
)

type config struct {
	chatmodel.Config
	Temperature   float64  `config:"temperature" default:"0" min:"0" max:"100" doc:"How varied the answers are; 0 gives the likeliest text."`
	MaxTokens     int      `config:"max_tokens" default:"0" min:"-1" doc:"Most tokens of an answer, without what a model thinks before it; 0: 150; -1: no limit."`
	ContextTokens int      `config:"context_tokens" default:"100000" min:"1000" doc:"How much of a document the model sees, in tokens of four characters; of a longer one the beginning, and the text around the passage."`
	Path          bool     `config:"path" default:"false" doc:"Whether the model also sees the path of a document that has a title of its own; after a rename such a document is then asked about again. One without a title is always shown with its path."`
	System        sdk.Path `config:"system" doc:"A Go template to write the system message with, in place of the built-in one; it may use .Part and join."`
	Prompt        sdk.Path `config:"prompt" doc:"A Go template to write the last message with, in place of the built-in one; it may use .Chunk, .Part and join."`
}

// Data is what the templates can use.
type Data struct {
	Part  bool   // the document is shown in part
	Chunk string // the passage, between <chunk> and </chunk>; empty in the system message
}

//go:embed system.tmpl
var systemTemplate string

//go:embed prompt.tmpl
var promptTemplate string

// usualTokens is the length of an answer where the file does not say.
const usualTokens = 150

// Stage describes the enricher.
func Stage() sdk.Stage {
	return sdk.EnrichStage("context", "Has a language model contextualize each passage in its document.", open, sdk.Revision("2"),
		sdk.Reads(sdk.ColumnText), sdk.Network(), sdk.PreferBatch(1), sdk.PendsIf(chatmodel.BatchArgument), sdk.Validates(config.check))
}

func open(_ context.Context, setup sdk.Setup, c config) (sdk.Enricher, error) {
	templates, err := c.load()
	if err != nil {
		return nil, err
	}
	return &enricher{config: c, Pair: templates, Model: chatmodel.New(c.Config, setup), room: make(chan struct{}, maxRequests)}, nil
}

// check reports the errors that tags cannot find.
func (c config) check() error {
	_, err := c.load()
	return errors.Join(err, c.Config.Check())
}

func (c config) load() (fewshot.Pair, error) {
	return fewshot.LoadPair(c.System, c.Prompt, [2]string{systemTemplate, promptTemplate}, ".Chunk", ".Chunk",
		Data{Chunk: fewshot.Passage}, Data{Part: true, Chunk: "chunk"}, Data{})
}

type enricher struct {
	*chatmodel.Model
	fewshot.Pair
	config config
	room   chan struct{} // for each request that is being written or under way
}
