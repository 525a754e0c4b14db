package observe

import (
	"context"
	"time"

	"github.com/racflow/racflow/engine/outcome"
)

// Or returns o, or one that does nothing where o is nil.
func Or(o Observer) Observer {
	if o == nil {
		return nobody{}
	}
	return o
}

type nobody struct{}

func (nobody) Batch(ctx context.Context, _ string, _ []Item) (context.Context, func([]outcome.Result)) {
	return ctx, func([]outcome.Result) {}
}
func (nobody) Call(ctx context.Context, _ Call) (context.Context, func(Done)) {
	return ctx, func(Done) {}
}
func (nobody) Request(context.Context, Request) (func(), func(Reply)) {
	return func() {}, func(Reply) {}
}
func (nobody) CacheHits(string, string, int)          {}
func (nobody) Retried(string, string)                 {}
func (nobody) Restarted(string, string)               {}
func (nobody) Knowledge(string, time.Duration, error) {}
func (nobody) Queued(string, int)                     {}
func (nobody) Swapped(string)                         {}
func (nobody) Cluster(string, Cluster)                {}
