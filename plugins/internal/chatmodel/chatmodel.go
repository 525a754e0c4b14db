package chatmodel

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/dialect"
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
	Completion     bool          // the model continues texts; chats are not continued
	Choices        int           // the most answers in one request; 0: one
	CacheControl   bool          `config:"cache_control" affects_output:"false" doc:"Mark what many requests begin with by cache_control, for services that cache only what is marked, as Anthropic's do."`
	Batch          bool          `config:"batch" affects_output:"false" doc:"Ask by the service's batches: all requests in one file, whose answers come within 24 hours and cost half. The rows wait for each other; a run that ends meanwhile fetches them when it is resumed."`
	Limited        string        // the service's name for limits; empty: its address
}

// apiAnthropic is the value of api for Anthropic's Messages API.
const apiAnthropic = "anthropic"

// openAIAddress is the default of base_url.
const openAIAddress = "https://api.openai.com/v1"

// dialect returns the dialect of the service.
func (c Config) dialect() dialect.Dialect {
	if c.API == apiAnthropic {
		return dialect.Anthropic{}
	}
	return dialect.OpenAI{APIVersion: c.APIVersion}
}

// Address is the address of the service. OpenAI's address, the default of base_url, is wrong for Anthropic's API, so
// Anthropic's own address replaces it.
func (c Config) Address() string {
	if c.API == apiAnthropic && c.BaseURL == openAIAddress {
		return dialect.AnthropicURL
	}
	return strings.TrimRight(c.BaseURL, "/")
}

// Addresses implements sdk.Stage.Addresses for a stage that asks only this model.
func (c Config) Addresses() map[string]string { return map[string]string{"": c.Address()} }

// Default is the default of base_url.
func (Config) Default() string { return openAIAddress }

// reserved are the fields of a request that the body argument must not set, because stages depend on them.
var reserved = []string{"model", "messages", "prompt", "n", "stream", "stream_options"}

func (c Config) service(setup sdk.Setup) api.Config {
	reserved := reserved
	if c.API == apiAnthropic {
		reserved = append(slices.Clone(reserved), "system")
	}
	return api.Config{Service: c.Service, BaseURL: c.Address(), Limited: c.Limited, Key: c.dialect().Header, Reserved: reserved, Host: setup.Host, Log: setup.Log}
}

// Check reports the errors that tags cannot find, as sdk.ArgumentErrors.
func (c Config) Check() error {
	var errs api.Errors
	errs.Require(c.API != apiAnthropic || c.APIVersion == "", "api_version", "it is Azure's, and api is anthropic; leave one of them out")
	errs.Require(c.API != apiAnthropic || !c.Completion, "api", "Anthropic's API continues no texts; write endpoint = \"chat\"")
	errs.Require(!c.Batch || c.APIVersion == "", BatchArgument, "Azure takes batches only where api_version is not given and base_url ends in /openai/v1")
	return errors.Join(errs.Err(), c.service(sdk.Setup{}).Check())
}

// Model is a language model behind a server. Its methods may be called by
// several goroutines.
type Model struct {
	*api.Client
	dialect    dialect.Dialect
	blank      dialect.Request // the fields that the config sets in every request
	keeper     *profile.Keeper
	obeyed     atomic.Bool // the model gave a structured answer
	recognised sync.Once   // recognise was called
	turns      sync.Map    // by key in use: a channel that is closed when the key is free again
	jobs       *Jobs       // nil: requests are sent as single calls
}

// New returns the model of a valid config (Check).
func New(c Config, setup sdk.Setup) *Model {
	m := &Model{Client: api.New(c.service(setup)), dialect: c.dialect()}
	m.blank = dialect.Request{Model: c.Model, CacheMarks: c.CacheControl, PromptCacheKey: c.PromptCacheKey, Extra: m.Fields()}
	if c.MaxTokensField != "auto" {
		m.blank.MaxTokensField = c.MaxTokensField
	}
	m.blank = c.Profile.Ask(m.blank)
	m.blank.About = strings.TrimSpace(setup.Block + " " + m.blank.Effort)
	m.keeper = profile.NewKeeper(profile.Config{
		Target:  profile.Target{Dialect: m.dialect, Model: c.Model, Completion: c.Completion, Choices: c.Choices, Ask: m.probe},
		Address: m.Address(), Host: m.Host(), Given: c.Profile, Probe: c.Probe, Warn: m.WarnOnce,
	})
	m.jobs = m.batches(c, setup)
	return m
}

// Name is the server's name of the model.
func (m *Model) Name() string { return m.blank.Model }

// Models implements sdk.Prober.
func (m *Model) Models() []sdk.Model { return []sdk.Model{m.keeper} }

// Close waits for the end of a probe, and closes idle connections.
func (m *Model) Close() error {
	m.keeper.Close()
	return m.Client.Close()
}

// Request returns a request without a question, with all fields that the config sets. Answers have at most maxTokens
// tokens, without thoughts; -1 means no limit, and 0 means usual.
func (m *Model) Request(maxTokens, usual int) dialect.Request {
	r := m.blank
	switch {
	case maxTokens == 0:
		r.MaxTokens = usual
	case maxTokens > 0:
		r.MaxTokens = maxTokens
	}
	return r
}

// Key is the cache key of the first answer to a request. Parts describe how the answer is processed before it is
// cached. The key does not depend on what the model refuses, so that paid answers stay valid. For a server on this
// machine, the key contains the model that the server actually serves.
func (m *Model) Key(r dialect.Request, parts ...string) sdk.Key {
	if served := m.keeper.Served().Model; served != "" && served != m.Name() {
		parts = append(slices.Clip(parts), "served", served)
	}
	return r.Key(m.Address(), m.dialect.Path(r), parts...)
}

// Turn waits until none of the keys is in use, and reserves them until leave is called. So if two callers ask the
// same at the same time, the second finds the first one's answers in the cache.
func (m *Model) Turn(ctx context.Context, keys ...sdk.Key) (leave func(), err error) {
	keys = slices.Clone(keys)
	// Always in the same order, to avoid deadlocks.
	slices.SortFunc(keys, func(a, b sdk.Key) int { return bytes.Compare(a[:], b[:]) })
	keys = slices.Compact(keys)
	mine, taken := make(chan struct{}), 0
	leave = func() {
		for _, key := range keys[:taken] {
			m.turns.Delete(key)
		}
		close(mine)
	}
	for _, key := range keys {
		for other, busy := m.turns.LoadOrStore(key, mine); busy; other, busy = m.turns.LoadOrStore(key, mine) {
			select {
			case <-other.(chan struct{}):
			case <-ctx.Done():
				leave()
				return nil, ctx.Err()
			}
		}
		taken++
	}
	return leave, nil
}
