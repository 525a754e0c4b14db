package sdk

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"time"
)

// Host is what the engine offers to a stage that calls services: limits and a budget, which all
// stages of a run share, and a response cache, which outlives the run. A stage may use it while it
// opens, too. Several goroutines may call its methods at once.
type Host interface {
	// CacheGet returns the value that CachePut stored under each key, in this run or an earlier one.
	// The value of an unknown key is nil.
	CacheGet(ctx context.Context, keys []Key) ([][]byte, error)
	// CachePut stores a value of at most MaxCached bytes. Once CachePut has returned, the value
	// survives the end of every process.
	CachePut(ctx context.Context, key Key, value []byte) error
	// Profile returns what is known about a model behind an endpoint: the JSON object that KeepProfile
	// stored, in this run or an earlier one. A person may have edited it. nil: nothing is known.
	Profile(ctx context.Context, endpoint, model string) (json.RawMessage, error)
	// KeepProfile stores what was found out about a model and replaces what was known: a JSON object
	// of at most MaxProfile bytes, without a secret.
	KeepProfile(ctx context.Context, endpoint, model string, profile json.RawMessage) error
	// Acquire waits until the call may be sent. The caller then sends the call, and calls release
	// once, with the result. If Acquire returns an error, the caller must not send the call; the rows
	// of the call fail with that error.
	Acquire(ctx context.Context, call Call) (release func(Result), err error)
}

// MaxProfile is the size of the largest profile that Host.KeepProfile takes, in bytes.
const MaxProfile = 64 << 10

// MaxCached is the size of the largest value that Host.CachePut takes, in bytes.
const MaxCached = 16 << 20

// Key names a cached value by everything that the value depends on: endpoint, model, messages,
// parameters, number of the sample; but never by a secret. Plugins do not see each other's values.
type Key [sha256.Size]byte

// KeyOf makes a key from parts; different lists of parts make different keys.
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
	// Tokens is about how many tokens the call will use, input and output together. They count towards
	// a limit of tokens per minute while the call is in progress. 0: the service has no tokens.
	Tokens int
	// Most is the highest usage that the call can have; a budget reserves it. The zero Usage: unknown,
	// as for answers without a limit.
	Most Usage
	// Batch says that the call goes to a batch service, whose answers come later and cost less.
	Batch bool
	// Alternative says that the caller has another service to ask if this one does not serve the call.
	// If this service is down or asks for a pause, Acquire refuses the call at once. What the service
	// does never stops the stage.
	Alternative bool
}

// Upper limits of what a call can use, beyond those of every model that exists.
const (
	mostPrompt  = 1 << 24 // tokens of a request
	mostAnswers = 1 << 20 // tokens of all answers to a request
	thoughts    = 1000    // times the limit of an answer: some services count the model's thoughts in addition to the answer
	shortest    = 512     // tokens: a smaller limit of an answer counts as this many
)

// Believes reports whether the call can have used as much as its service reports.
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
	// RetryAfter is how long the service wants no calls (StatusBusy), or how long no call is worth a
	// try, since the whole service fails and not a single request (StatusDown). 0: nobody knows.
	RetryAfter time.Duration
	Usage      Usage
	Lost       bool   // the request was sent and got no complete reply: its cost is unknown, and it may have to be paid for
	Reason     string // StatusBusy, StatusDown, StatusDenied: what went wrong, StatusOK: a usage that cannot be, as the service wrote it; for people to read, without a secret
}

// Status says what the result of a call tells about the service.
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

// Alone returns a Host for a stage that is opened without an engine: it caches nothing and limits
// nothing.
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
