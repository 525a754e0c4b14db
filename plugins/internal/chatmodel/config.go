package chatmodel

import (
	"errors"
	"slices"
	"strings"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/plugins/internal/dialect/anthropic"
	"github.com/racflow/racflow/plugins/internal/profile"
	"github.com/racflow/racflow/sdk"
)

// Config is embedded in the configs of stages that ask a language model.
type Config struct {
	API        string `config:"api" default:"openai" one_of:"openai,anthropic" doc:"The form of requests: openai, which most servers and gateways take, or anthropic, of Anthropic's Messages API."`
	BaseURL    string `config:"base_url" default:"https://api.openai.com/v1" pattern:"^https?://[^\\s/]+" example:"http://127.0.0.1:8080/v1" doc:"Address of the server, up to and with its version; of Azure, without a path. With api = \"anthropic\" the default is https://api.anthropic.com/v1."`
	Model      string `config:"model,required" example:"gpt-4o-mini" min_length:"1" doc:"Name of the model, as the server knows it; on Azure, of the deployment."`
	APIVersion string `config:"api_version" example:"2024-10-21" pattern:"^[\\w.-]+$" doc:"Version of Azure's API: requests go to the deployment that model names; empty: another service."`
	api.Service
	MaxTokensField string        `config:"max_tokens_field" default:"auto" one_of:"auto,max_tokens,max_completion_tokens" doc:"The name that the server has for max_tokens; auto: max_tokens, or what the server turns out to take."`
	Probe          bool          `config:"probe" affects_output:"false" default:"true" doc:"Find out what the model takes before its first call, by at most four short calls, where nothing is known of it yet."`
	Profile        profile.Given `config:"profile" doc:"What is known of the model: it goes before what is found out."`
	PromptCacheKey string        `config:"prompt_cache_key" affects_output:"false" doc:"Sent as it is, for servers that route requests of one key to one cache."`
	Completion     bool          // texts are continued, chats are not
	CacheControl   bool          `config:"cache_control" affects_output:"false" doc:"Mark what many requests begin with by cache_control, for services that cache only what is marked, as Anthropic's do."`
	Batch          bool          `config:"batch" affects_output:"false" doc:"Ask by the service's batches: all requests in one file, whose answers come within 24 hours and cost half. The rows wait for each other; a run that ends meanwhile fetches them when it is resumed."`
	Limited        string        // the name by which limits know the service; empty: its address
}

// apiAnthropic is the value of api for Anthropic's Messages API.
const apiAnthropic = "anthropic"

// openAIAddress is the default of base_url.
const openAIAddress = "https://api.openai.com/v1"

// dialect is the form of the service's requests and replies.
func (c Config) dialect() dialect.Dialect {
	if c.API == apiAnthropic {
		return anthropic.Dialect{}
	}
	return dialect.OpenAI{APIVersion: c.APIVersion}
}

// Address is the address of the service. Nobody means OpenAI's, the default, with Anthropic's
// API, which it does not have.
func (c Config) Address() string {
	if c.API == apiAnthropic && c.BaseURL == openAIAddress {
		return anthropic.BaseURL
	}
	return strings.TrimRight(c.BaseURL, "/")
}

// Default is the default of base_url.
func (Config) Default() string { return openAIAddress }

// reserved are the fields of a request that the body argument must not set: stages
// count and read by them.
var reserved = []string{"model", "messages", "prompt", "n", "stream", "stream_options"}

func (c Config) service(setup sdk.Setup) api.Config {
	reserved := reserved
	if c.API == apiAnthropic {
		reserved = append(slices.Clone(reserved), "system")
	}
	return api.Config{Service: c.Service, BaseURL: c.Address(), Limited: c.Limited, Key: c.dialect().Header, Reserved: reserved, Host: setup.Host, Log: setup.Log}
}

// Check reports the errors that tags cannot find: sdk.ArgumentErrors.
func (c Config) Check() error {
	var errs api.Errors
	errs.Require(c.API != apiAnthropic || c.APIVersion == "", "api_version", "it is Azure's, and api is anthropic; leave one of them out")
	errs.Require(c.API != apiAnthropic || !c.Completion, "api", "Anthropic's API continues no texts; write endpoint = \"chat\"")
	errs.Require(!c.Batch || c.APIVersion == "", BatchArgument, "Azure takes batches only where api_version is not given and base_url ends in /openai/v1")
	return errors.Join(errs.Err(), c.service(sdk.Setup{}).Check())
}
