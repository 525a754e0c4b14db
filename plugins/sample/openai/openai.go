package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/sashabaranov/go-openai"

	"github.com/racflow/racflow/sdk"
)

type config struct {
	BaseURL     string        `config:"base_url" default:"https://api.openai.com/v1" doc:"Address of the server, up to and with its version."`
	Model       string        `config:"model,required" doc:"Name of the model, as the server knows it."`
	APIKey      string        `config:"api_key,secret" doc:"Key for the server; none for one that wants none."`
	Endpoint    string        `config:"endpoint" default:"chat" one_of:"chat,completions" doc:"chat sends the prompt as a user's message, completions as a text to continue."`
	Temperature float64       `config:"temperature" default:"0.7" doc:"How varied the samples are; 0 gives the likeliest text."`
	MaxTokens   int           `config:"max_tokens" default:"32" doc:"Most tokens of an answer; 0 leaves it to the server."`
	Stop        string        `config:"stop" default:"\n" doc:"Text that ends an answer; empty sends none."`
	Concurrency int           `config:"concurrency" default:"4" doc:"Most requests at a time."`
	Timeout     time.Duration `config:"timeout" default:"60s" doc:"Longest time of one request."`
}

// maxChoices is the most that OpenAI's API accepts as n.
const maxChoices = 128

// Stage describes the voter.
func Stage() sdk.Stage {
	return sdk.SampleStage("openai", "Asks a language model behind an OpenAI-compatible server n times to complete the prompt with a label.",
		open, sdk.Reads(sdk.ColumnPrompts), sdk.Network(), sdk.PreferBatch(16))
}

func open(_ context.Context, setup sdk.Setup, c config) (sdk.Sampler, error) {
	c.APIKey = strings.TrimSpace(c.APIKey) // a key from a file often ends in a line break
	if err := c.check(); err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = c.Concurrency
	d := &doer{
		client:          http.Client{Transport: transport, Timeout: c.Timeout},
		key:             c.APIKey,
		temperatureZero: c.Temperature == 0,
	}
	api := openai.DefaultConfig(c.APIKey)
	api.BaseURL, api.HTTPClient = c.BaseURL, d
	v := &voter{
		config:  c,
		api:     openai.NewClientWithConfig(api),
		doer:    d,
		samples: max(1, setup.Samples),
		slots:   make(chan struct{}, c.Concurrency),
	}
	v.choices.Store(maxChoices)
	// The client refuses some models' requests without sending them.
	validator := openai.NewReasoningValidator()
	if err := validator.Validate(v.chatRequest("", 1)); err != nil {
		return nil, &sdk.ArgumentError{Argument: "model", Err: fmt.Errorf(
			"%q takes other request fields (%w); write temperature = 1, max_tokens = 0 and stop = \"\", or name another model", c.Model, err)}
	}
	if validator.Validate(v.chatRequest("", 2)) != nil {
		v.choices.Store(1)
	}
	return v, nil
}

// check reports every argument that is at fault.
func (c config) check() error {
	var faults []error
	need := func(ok bool, argument, text string) {
		if !ok {
			faults = append(faults, &sdk.ArgumentError{Argument: argument, Err: errors.New(text)})
		}
	}
	u, err := url.Parse(c.BaseURL)
	need(err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "",
		"base_url", "it must be an address such as http://127.0.0.1:8080/v1")
	need(c.Model != "", "model", "it must not be empty")
	need(!strings.ContainsFunc(c.APIKey, func(r rune) bool { return r <= ' ' || r > '~' }),
		"api_key", "it holds a character that no key has; was it copied whole?")
	need(c.Temperature >= 0, "temperature", "it must be at least 0")
	need(c.MaxTokens >= 0, "max_tokens", "it must be at least 0")
	need(c.Concurrency >= 1, "concurrency", "it must be at least 1")
	need(c.Timeout > 0, "timeout", "it must be more than 0")
	return errors.Join(faults...)
}
