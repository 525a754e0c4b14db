package chatmodel

import (
	"path"
	"slices"
	"strings"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/sdk"
)

// Config is embedded in the configs of stages that ask a language model.
type Config struct {
	BaseURL string `config:"base_url" default:"https://api.openai.com/v1" pattern:"^https?://[^\\s/]+" example:"http://127.0.0.1:8080/v1" doc:"Address of the server, up to and with its version."`
	Model   string `config:"model,required" example:"gpt-4o-mini" min_length:"1" doc:"Name of the model, as the server knows it."`
	api.Service
	MaxTokensField string `config:"max_tokens_field" default:"auto" one_of:"auto,max_tokens,max_completion_tokens" doc:"The name that the server has for max_tokens; auto goes by the model's name."`
	PromptCacheKey string `config:"prompt_cache_key" affects_output:"false" doc:"Sent as it is, for servers that route requests of one key to one cache."`
	CacheControl   bool   `config:"cache_control" affects_output:"false" doc:"Mark what many requests begin with by cache_control, for services that cache only what is marked, as Anthropic's do."`
}

// Model is a language model behind a server. Its methods may be called by
// several goroutines.
type Model struct {
	*api.Client
	config Config
	turns  turns
}

// reserved are the fields of a request that the body argument must not set: stages
// count and read by them.
var reserved = []string{"model", "messages", "prompt", "n", "stream"}

func (c Config) service(setup sdk.Setup) api.Config {
	return api.Config{Service: c.Service, BaseURL: c.BaseURL, Reserved: reserved, Host: setup.Host, Log: setup.Log}
}

// Check reports the errors that tags cannot find: sdk.ArgumentErrors.
func (c Config) Check() error { return c.service(sdk.Setup{}).Check() }

// New returns the model of a config that Check finds no error in.
func New(c Config, setup sdk.Setup) *Model {
	return &Model{Client: api.New(c.service(setup)), config: c, turns: turns{taken: map[sdk.Key]chan struct{}{}}}
}

// Essential is the same model with requests that hold only what answers depend on: for
// keys of the response cache.
func (m *Model) Essential() *Model {
	return &Model{Client: m.Client, config: api.Essential(m.config)}
}

// Thinks reports whether the model is one of OpenAI's that think first. Only the name
// tells; gateways put their own name and a slash before it.
func (m *Model) Thinks() bool {
	name := path.Base(m.config.Model)
	return slices.ContainsFunc([]string{"o1", "o3", "o4", "gpt-5", "gpt-6"}, func(prefix string) bool {
		return strings.HasPrefix(name, prefix)
	})
}

// Limit is the most tokens of an answer, 0 for no limit, by the argument max_tokens: -1
// is no limit, and 0 the usual one, or none for a model that thinks.
func (m *Model) Limit(maxTokens, usual int) int {
	switch {
	case maxTokens != 0:
		return max(0, maxTokens)
	case m.Thinks():
		return 0
	}
	return usual
}
