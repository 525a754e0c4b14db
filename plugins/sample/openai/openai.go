package openai

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/answer"
)

type config struct {
	BaseURL        string            `config:"base_url" default:"https://api.openai.com/v1" doc:"Address of the server, up to and with its version."`
	Model          string            `config:"model,required" doc:"Name of the model, as the server knows it."`
	APIKey         string            `config:"api_key,secret" doc:"Key for the server; none for one that wants none."`
	Endpoint       string            `config:"endpoint" default:"chat" one_of:"chat,completions" doc:"chat sends the prompt as a chat, completions as a text to continue."`
	Temperature    float64           `config:"temperature" default:"0.7" doc:"How varied the samples are; 0 gives the likeliest text."`
	TopP           float64           `config:"top_p" default:"1" doc:"Share of the likeliest tokens to draw from; 1 sends none."`
	Seed           int               `config:"seed" default:"-1" doc:"Seed of a request, plus the number of its first sample; -1 sends none."`
	MaxTokens      int               `config:"max_tokens" default:"0" doc:"Most tokens of an answer; 0: 32 for a text, 512 for JSON, no limit for a model that thinks first; -1: no limit."`
	MaxTokensField string            `config:"max_tokens_field" default:"auto" one_of:"auto,max_tokens,max_completion_tokens" doc:"The name that the server has for it; auto goes by the model's name."`
	Stop           []string          `config:"stop" default:"\n" doc:"Texts that end an answer; not sent where the answer is JSON."`
	MaxN           int               `config:"max_n" default:"128" doc:"Most choices to ask for in one request."`
	Logprobs       bool              `config:"logprobs" doc:"Weigh an answer by the probability that the server gives its tokens."`
	Structured     string            `config:"structured" default:"auto" one_of:"auto,json_schema,choice,off" doc:"How the server is held to the labels: response_format json_schema, vLLM's structured_outputs choice, or not; auto: json_schema where the prompt wants JSON."`
	Normalise      bool              `config:"normalise" doc:"Take an answer for the label that differs from it only in case, spaces, underscores and hyphens."`
	Nearest        float64           `config:"nearest" doc:"Take an answer for the label that shares most words with it, if their F1 is at least this; 0: off."`
	PromptCacheKey string            `config:"prompt_cache_key" doc:"Sent as it is, for servers that route requests of one key to one cache."`
	Headers        map[string]string `config:"headers,secret" doc:"Further headers of every request."`
	Body           string            `config:"body" doc:"A JSON object of further fields of every request."`
	Timeout        time.Duration     `config:"timeout" default:"60s" doc:"Longest time of one request."`
}

// reserved are the fields of a request that the body argument must not set:
// what this package counts or reads by them.
var reserved = []string{"model", "messages", "prompt", "n", "stream"}

// Stage describes the voter.
func Stage() sdk.Stage {
	return sdk.SampleStage("openai", "Asks a language model behind an OpenAI-compatible server n times for the label.",
		open, sdk.Reads(sdk.ColumnPrompts), sdk.Network(), sdk.PreferBatch(1))
}

func open(_ context.Context, setup sdk.Setup, c config) (sdk.Sampler, error) {
	faults := []error{c.check()}
	client, err := api.New(api.Config{
		BaseURL: c.BaseURL, APIKey: c.APIKey, Headers: c.Headers, Body: c.Body, Reserved: reserved,
		Timeout: c.Timeout, Host: setup.Host, Log: setup.Log,
	})
	if err := errors.Join(append(faults, err)...); err != nil {
		return nil, err
	}
	v := &voter{
		config:  c,
		client:  client,
		samples: max(1, setup.Samples),
		reading: answer.Options{Normalise: c.Normalise, Nearest: c.Nearest},
		turns:   turns{taken: map[sdk.Key]chan struct{}{}},
	}
	v.choices.Store(int32(c.MaxN))
	if thinks(c.Model) {
		v.choices.Store(1)
	}
	return v, nil
}

// check reports every argument that is at fault, but for those of api.Config.
func (c config) check() error {
	var faults api.Faults
	faults.Need(c.Model != "", "model", "it must not be empty")
	faults.Need(c.Temperature >= 0, "temperature", "it must be at least 0")
	faults.Need(c.TopP > 0 && c.TopP <= 1, "top_p", "it must be more than 0 and at most 1")
	faults.Need(c.Seed >= -1, "seed", "it must be at least 0, or -1 for none")
	faults.Need(c.MaxTokens >= -1, "max_tokens", "it must be at least 0, or -1 for no limit")
	faults.Need(!slices.Contains(c.Stop, ""), "stop", "an empty text ends nothing; write stop = [] for none")
	faults.Need(c.MaxN >= 1 && c.MaxN <= 128, "max_n", "it must be between 1 and 128")
	faults.Need(c.Nearest >= 0 && c.Nearest <= 1, "nearest", "it must be between 0 and 1")
	return faults.Err()
}

// thinks reports whether a model is one of OpenAI's that think first, by its
// name: there is no other sign. Gateways put their own name before a slash.
func thinks(model string) bool {
	name := path.Base(model)
	return slices.ContainsFunc([]string{"o1", "o3", "o4", "gpt-5", "gpt-6"}, func(prefix string) bool {
		return strings.HasPrefix(name, prefix)
	})
}
