package sdk

import (
	"context"
	"encoding/json"
)

// Prober is a stage that asks language models and knows what they take. The engine asks
// built-in Samplers and Enrichers, which it opens in its own process for that.
type Prober interface {
	// Models are those that the stage asks, in order.
	Models() []Model
}

// Model is a language model with a profile: a JSON object, which is kept by Host.KeepProfile
// under the model's endpoint and name.
type Model interface {
	Endpoint() string
	Name() string
	// Profile returns what is known of the model, with what the file says of it; nil where
	// nothing is kept. It calls nobody.
	Profile(ctx context.Context) (json.RawMessage, error)
	// Probe finds out anew what the model takes, by calls of the Host, and keeps it.
	Probe(ctx context.Context) (json.RawMessage, error)
}
