package chatmodel

import (
	"sync/atomic"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/batchjob"
	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/plugins/internal/profile"
	"github.com/racflow/racflow/sdk"
)

// Model is a language model behind a server. Its methods may be called by
// several goroutines.
type Model struct {
	*api.Client
	dialect dialect.Dialect
	blank   dialect.Request // with what the config says of every request
	keeper  *profile.Keeper
	obeyed  atomic.Bool // a structured answer has come
	turns   turns
	jobs    *batchjob.Jobs // nil: it is asked by single calls
}

// New returns the model of a config that Check finds no error in.
func New(c Config, setup sdk.Setup) *Model {
	m := &Model{Client: api.New(c.service(setup)), dialect: c.dialect(), turns: turns{taken: map[sdk.Key]chan struct{}{}}}
	m.blank = dialect.Request{Model: c.Model, CacheMarks: c.CacheControl, PromptCacheKey: c.PromptCacheKey, Extra: m.Fields()}
	if c.MaxTokensField != "auto" {
		m.blank.MaxTokensField = c.MaxTokensField
	}
	m.blank = c.Profile.Ask(m.blank)
	m.keeper = profile.NewKeeper(profile.Config{
		Target:  profile.Target{Dialect: m.dialect, Model: c.Model, Completion: c.Completion, Ask: m.probe},
		Address: m.Address(), Host: m.Host(), Given: c.Profile, Probe: c.Probe, Warn: m.WarnOnce,
	})
	m.jobs = m.batches(c, setup)
	return m
}

// Name is the name of the model, as the server knows it.
func (m *Model) Name() string { return m.blank.Model }

// Models implements sdk.Prober.
func (m *Model) Models() []sdk.Model { return []sdk.Model{m.keeper} }

// Close waits for the end of a probe, and closes idle connections.
func (m *Model) Close() error {
	m.keeper.Close()
	return m.Client.Close()
}

// Request is one without a question, with all that the config says of every request.
// Answers have at most maxTokens tokens, without thoughts; -1 is no limit, and 0 the usual one.
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

// Key is the key of the first answer to a request in the response cache. Parts say
// what is made of the answer before it is cached. What the model turns out to take or refuse does not
// count: an answer that was paid for stays one.
func (m *Model) Key(r dialect.Request, parts ...string) sdk.Key {
	return r.Key(m.Address(), m.dialect.Path(r), parts...)
}
