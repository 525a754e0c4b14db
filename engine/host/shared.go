package host

import (
	"context"

	"github.com/racflow/racflow/engine/redact"
	"github.com/racflow/racflow/sdk"
)

// sharedHost is what the engine shares with a stage, without the secrets that the
// stage might say there.
type sharedHost struct {
	sdk.Host
	secrets *redact.Secrets
}

// Acquire implements sdk.Host.
func (h sharedHost) Acquire(ctx context.Context, c sdk.Call) (func(sdk.Result), error) {
	c.Endpoint = h.secrets.Message(c.Endpoint)
	release, err := h.Host.Acquire(ctx, c)
	if err != nil {
		return nil, err
	}
	return func(o sdk.Result) {
		o.Reason = h.secrets.Message(o.Reason)
		release(o)
	}, nil
}

// CachePut implements sdk.Host. A value with a secret in it is not kept: what it was the
// answer to is asked again.
func (h sharedHost) CachePut(ctx context.Context, key sdk.Key, value []byte) error {
	if h.secrets.InResults() && h.secrets.Result(string(value)) != string(value) {
		return nil
	}
	return h.Host.CachePut(ctx, key, value)
}
