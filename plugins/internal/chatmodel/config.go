package chatmodel

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/sdk"
)

// Config is embedded in the configs of stages that ask a language model.
type Config struct {
	BaseURL        string            `config:"base_url" default:"https://api.openai.com/v1" pattern:"^https?://[^\\s/]+" example:"http://127.0.0.1:8080/v1" doc:"Address of the server, up to and with its version."`
	Model          string            `config:"model,required" example:"gpt-4o-mini" min_length:"1" doc:"Name of the model, as the server knows it."`
	APIKey         string            `config:"api_key,secret" doc:"Key for the server; none for one that wants none."`
	MaxTokensField string            `config:"max_tokens_field" default:"auto" one_of:"auto,max_tokens,max_completion_tokens" doc:"The name that the server has for max_tokens; auto goes by the model's name."`
	PromptCacheKey string            `config:"prompt_cache_key" affects_output:"false" doc:"Sent as it is, for servers that route requests of one key to one cache."`
	CacheControl   bool              `config:"cache_control" affects_output:"false" doc:"Mark what many requests begin with by cache_control, for services that cache only what is marked, as Anthropic's do."`
	Headers        map[string]string `config:"headers,secret" doc:"Further headers of every request."`
	Body           string            `config:"body" example:"{\"user\": \"me\"}" doc:"A JSON object of further fields of every request."`
	Timeout        time.Duration     `config:"timeout" affects_output:"false" default:"60s" above:"0s" doc:"Longest time of one request."`
}

// Model is a language model behind a server. Its methods may be called by
// several goroutines.
type Model struct {
	*api.Client
	config Config
	turns  turns
}

// reserved are the fields of a request that the body argument must not set: what
// stages count or read by them.
var reserved = []string{"model", "messages", "prompt", "n", "stream"}

func (c Config) service(setup sdk.Setup) api.Config {
	return api.Config{
		BaseURL: c.BaseURL, APIKey: c.APIKey, Headers: c.Headers, Body: c.Body, Reserved: reserved,
		Timeout: c.Timeout, Host: setup.Host, Log: setup.Log,
	}
}

// Check reports what the tags cannot say: ArgumentErrors.
func (c Config) Check() error { return c.service(sdk.Setup{}).Check() }

// New returns the model of a config. Its errors are those of Check.
func New(c Config, setup sdk.Setup) (*Model, error) {
	client, err := api.New(c.service(setup))
	if err != nil {
		return nil, err
	}
	return &Model{Client: client, config: c, turns: turns{taken: map[sdk.Key]chan struct{}{}}}, nil
}

// Essential is the same model, whose requests hold only what an answer depends on.
func (m *Model) Essential() *Model {
	return &Model{Client: m.Client, config: api.Essential(m.config)}
}

// Thinks reports whether the model is one of OpenAI's that think first, by its
// name: there is no other sign. Gateways put their own name before a slash.
func (m *Model) Thinks() bool {
	name := path.Base(m.config.Model)
	return slices.ContainsFunc([]string{"o1", "o3", "o4", "gpt-5", "gpt-6"}, func(prefix string) bool {
		return strings.HasPrefix(name, prefix)
	})
}

// Limit is the most tokens of an answer, 0 for none, where a file says max_tokens:
// -1 is no limit, and 0 the usual one, which models that think do not have.
func (m *Model) Limit(maxTokens, usual int) int {
	switch {
	case maxTokens != 0:
		return max(0, maxTokens)
	case m.Thinks():
		return 0
	}
	return usual
}
