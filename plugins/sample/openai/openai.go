package openai

import (
	"context"
	"maps"
	"slices"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/backends"
	"github.com/racflow/racflow/plugins/internal/chatmodel"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/answer"
)

type config struct {
	chatmodel.Config
	backends.Arguments
	Endpoint    string   `config:"endpoint" default:"chat" one_of:"chat,completions" doc:"chat sends the prompt as a chat, completions as a text to continue."`
	Temperature float64  `config:"temperature" default:"0.7" min:"0" max:"100" doc:"How varied the samples are; 0 gives the likeliest text."`
	TopP        float64  `config:"top_p" default:"1" above:"0" max:"1" doc:"Share of the likeliest tokens to draw from; 1 sends none."`
	Seed        int      `config:"seed" default:"-1" min:"-1" doc:"Seed of a request, plus the number of its first sample; -1 sends none."`
	MaxTokens   int      `config:"max_tokens" default:"0" min:"-1" doc:"Most tokens of an answer, without what a model thinks before it; 0: 32 for a label, 512 for JSON, 1024 for a text that cites passages; -1: no limit."`
	Stop        []string `config:"stop" pattern:"(?s)." doc:"Texts that end an answer; not sent where the answer is JSON or a text that cites passages. Without it a line break ends those of the completions endpoint."`
	MaxN        int      `config:"max_n" affects_output:"false" default:"128" min:"1" max:"128" doc:"Most choices to ask for in one request."`
	Logprobs    bool     `config:"logprobs" doc:"Weigh an answer by the probability that the server gives its tokens."`
	Structured  string   `config:"structured" default:"auto" one_of:"auto,json_schema,choice,off" doc:"How the answer is held to the labels: json_schema, or as strictly as the server can; vLLM's structured_outputs choice; or not; auto: json_schema where the prompt wants JSON."`
	Read        string   `config:"read" default:"plain" one_of:"plain,exact" doc:"How an answer is read: plain, as people would where it can mean one label only (markup, quotes, case, Label: x, JSON, fences); exact, only the label letter by letter."`
	Reasons     bool     `config:"reasons" doc:"Keep the model's reasons in the results: the other texts of the JSON object, such as its reasoning."`
	Nearest     float64  `config:"nearest" min:"0" max:"1" doc:"Take an answer for the label that shares most words with it, if their F1 is at least this; 0: off."`
}

// Stage describes the voter.
func Stage() sdk.Stage {
	return sdk.SampleStage("openai", "Asks a language model behind an OpenAI-compatible server n times for the label.",
		open, sdk.Revision("2"), sdk.Reads(sdk.ColumnPrompts), sdk.Network(), sdk.PreferBatch(1), sdk.PendsIf(chatmodel.BatchArgument), sdk.Validates(config.check))
}

// model is the config of the model.
func (c config) model() chatmodel.Config {
	c.Completion = c.Endpoint == "completions"
	return c.Config
}

func (c config) check() error {
	errs := api.Errors{c.Arguments.Check(c.model())}
	apis := append(slices.Collect(maps.Values(c.APIs)), c.API)
	errs.Require(c.Structured != "choice" || !slices.Contains(apis, "anthropic"), "structured", "choice is vLLM's: write \"json_schema\" for Anthropic's API")
	errs.Require(!c.Batch || c.Backends == nil, "batch", "a batch goes to one service: leave out backends")
	return errs.Err()
}

func open(_ context.Context, setup sdk.Setup, c config) (sdk.Sampler, error) {
	v := &voter{
		config:  c,
		set:     backends.New(c.model(), c.Arguments, setup),
		samples: max(1, setup.Samples),
		reading: answer.Options{Exact: c.Read == "exact", Nearest: c.Nearest, Reasons: c.Reasons},
	}
	v.Backend = v.set.All[0]
	for _, b := range v.set.All {
		b.Choices.Store(int32(c.MaxN))
	}
	return v, nil
}
