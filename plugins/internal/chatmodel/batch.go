package chatmodel

import (
	"context"

	"github.com/racflow/racflow/plugins/internal/batchjob"
	"github.com/racflow/racflow/sdk"
)

// BatchArgument is the name of the argument by which a stage asks in batches: its results
// then may be sdk.Pending, for sdk.PendsIf.
const BatchArgument = "batch"

// Later does a stage's work on rows, where the config says so by batches of the service: its error
// is *sdk.Pending then. handle is what that named before; empty: it did not.
func Later[R any](ctx context.Context, m *Model, handle string, work func(context.Context) (R, error)) (R, error) {
	if m.jobs == nil {
		return work(ctx)
	}
	return batchjob.Do(ctx, m.jobs, handle, work)
}

// batches are those of the model's service; nil: the config does not ask for any.
func (m *Model) batches(c Config, setup sdk.Setup) *batchjob.Jobs {
	if !c.Batch {
		return nil
	}
	if c.API == apiAnthropic {
		return batchjob.New(batchjob.Anthropic{Client: m.Client}, m.Client, setup)
	}
	return batchjob.New(batchjob.OpenAI{Client: m.Client}, m.Client, setup)
}
