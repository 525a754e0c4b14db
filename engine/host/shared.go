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

// Admit implements sdk.Host.
func (h sharedHost) Admit(ctx context.Context, c sdk.Call) (func(sdk.Outcome), error) {
	c.Endpoint = h.secrets.Message(c.Endpoint)
	done, err := h.Host.Admit(ctx, c)
	if err != nil {
		return nil, err
	}
	return func(o sdk.Outcome) {
		o.Reason = h.secrets.Message(o.Reason)
		done(o)
	}, nil
}

// Keep implements sdk.Host. A value with a secret in it is not kept: what it was the
// answer to is asked again.
func (h sharedHost) Keep(ctx context.Context, key sdk.Key, value []byte) error {
	if h.secrets.InResults() && h.secrets.Result(string(value)) != string(value) {
		return nil
	}
	return h.Host.Keep(ctx, key, value)
}
