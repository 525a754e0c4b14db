package sdk

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"time"
)

// Host is what the engine offers to a stage that calls services: limits and a
// budget that it shares with the other stages of the run, and a response cache that
// outlives the run. A stage may use it while it opens, too. Methods may be called by
// several goroutines at once.
type Host interface {
	// CacheGet returns what CachePut was given under each key, by this run or an
	// earlier one; nil where there is nothing.
	CacheGet(ctx context.Context, keys []Key) ([][]byte, error)
	// CachePut stores a value of at most MaxCached bytes. When it has returned, the
	// value survives the end of every process.
	CachePut(ctx context.Context, key Key, value []byte) error
	// Profile returns what is known of a model behind an endpoint, a JSON object: what
	// KeepProfile was given, by this run or an earlier one, as a person may have edited it; nil
	// where nothing is known.
	Profile(ctx context.Context, endpoint, model string) (json.RawMessage, error)
	// KeepProfile keeps what was found out about a model, a JSON object of at most MaxProfile bytes
	// without a secret, in the place of what was known.
	KeepProfile(ctx context.Context, endpoint, model string, profile json.RawMessage) error
	// Acquire waits until the call may be sent. The caller then sends it and calls
	// release, once, with its result. An error is the call's: it must not be sent, and
	// the rows that it was for fail with that error.
	Acquire(ctx context.Context, call Call) (release func(Result), err error)
}

// MaxProfile is the size of the largest profile that Host.KeepProfile takes, in bytes.
const MaxProfile = 64 << 10

// MaxCached is the size of the largest value that Host.CachePut takes, in bytes.
const MaxCached = 16 << 20

// Key names a cached value by all that it depends on: endpoint, model, messages,
// parameters, number of the sample. Never by a secret. Plugins do not see each
// other's values.
type Key [sha256.Size]byte

// KeyOf makes a key of parts; different lists of parts make different keys.
func KeyOf(parts ...string) Key {
	h := sha256.New()
	for _, p := range parts {
		_ = binary.Write(h, binary.LittleEndian, uint64(len(p))) // a hash takes everything
		h.Write([]byte(p))
	}
	return Key(h.Sum(nil))
}

// Call is one request to a service.
type Call struct {
	Endpoint string // which service: its address, without a secret
	// Tokens is what it will take, roughly, in and out: what counts towards the
	// tokens per minute of a limit while the call is under way. 0: no such thing.
	Tokens int
	// Most is what it can take at most: what a budget sets aside for it. The zero
	// Usage: unknown, as for answers without a limit.
	Most Usage
	// Batch says that it goes to where answers come later and cost less.
	Batch bool
	// Alternative says that the caller asks another service where this one does not serve it.
	// Where this one is down or wants a pause the call is refused at once, and what the
	// service does never stops the stage.
	Alternative bool
}

// What a call can take, beyond all models that there are.
const (
	mostPrompt  = 1 << 24 // tokens of a request
	mostAnswers = 1 << 20 // tokens that a request is answered with
	thoughts    = 1000    // times the limit of an answer: some count what a model thinks beside it
	shortest    = 512     // tokens of the limit below which that is no measure
)

// Believes reports whether the call can have taken what its service says.
func (c Call) Believes(u Usage) bool {
	most := max(mostAnswers, c.Most.OutputTokens)
	if c.Most != (Usage{}) {
		most = max(min(mostAnswers, max(c.Most.OutputTokens, shortest)*thoughts), c.Most.OutputTokens)
	}
	return u.Plausible() && u.InputTokens <= max(mostPrompt, c.Most.InputTokens) && u.OutputTokens <= most
}

// Result says how a call ended.
type Result struct {
	Status Status
	// RetryAfter is how long the service wants to be left alone (StatusBusy), or a call is not worth a
	// try, since it is not one request that fails, but the service (StatusDown); 0: nobody knows.
	RetryAfter time.Duration
	Usage      Usage
	Lost       bool   // it was sent and got no complete reply: its cost is unknown, and it may have to be paid for
	Reason     string // StatusBusy, StatusDown, StatusDenied: what went wrong, StatusOK: a usage that cannot be, as the service wrote it; for people to read, without a secret
}

// Status is what a call's result says about the service.
type Status uint8

// The results of a call.
const (
	StatusOK      Status = iota + 1 // it answered
	StatusBusy                      // it asks for fewer calls: 429, or 503 with a time to wait
	StatusDown                      // it could not be reached, or failed: 5xx
	StatusLeft                      // the caller gave up first
	StatusRefused                   // it refuses this request
	StatusDenied                    // it refuses this caller: a wrong key, an unknown model
)

// Alone returns the Host of a stage that is opened without an engine: it caches
// nothing and limits nothing.
func Alone() Host { return alone{} }

type alone struct{}

func (alone) CacheGet(_ context.Context, keys []Key) ([][]byte, error) {
	return make([][]byte, len(keys)), nil
}
func (alone) CachePut(context.Context, Key, []byte) error { return nil }
func (alone) Profile(context.Context, string, string) (json.RawMessage, error) {
	return nil, nil
}
func (alone) KeepProfile(context.Context, string, string, json.RawMessage) error { return nil }
func (alone) Acquire(ctx context.Context, _ Call) (func(Result), error) {
	return func(Result) {}, ctx.Err()
}
