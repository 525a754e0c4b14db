package outcome

import (
	"context"
	"errors"
	"time"

	"github.com/racflow/racflow/sdk"
)

// This file says what the engine reports to those who watch it work: batches of
// items, calls of stages, requests to services, retries, restarts, knowledge.
//
// It is an interface and the types that it needs, so that the engine depends neither on
// a library of metrics nor on one of traces. Package telemetry implements it. Nothing
// here changes what is answered, and nobody waits for an Observer: its methods return at
// once and return no errors.

// ObserverOr returns o, or one that does nothing where o is nil.
func ObserverOr(o Observer) Observer {
	if o == nil {
		return nobody{}
	}
	return o
}

type nobody struct{}

func (nobody) Batch(ctx context.Context, _ string, _ []ObservedItem) (context.Context, func([]Result)) {
	return ctx, func([]Result) {}
}
func (nobody) Call(ctx context.Context, _ StageCall) (context.Context, func(CallDone)) {
	return ctx, func(CallDone) {}
}
func (nobody) Request(context.Context, ServiceRequest) (func(), func(ServiceReply)) {
	return func() {}, func(ServiceReply) {}
}
func (nobody) CacheHits(string, string, int)          {}
func (nobody) Retried(string, string)                 {}
func (nobody) Restarted(string, string)               {}
func (nobody) Knowledge(string, time.Duration, error) {}
func (nobody) Queued(string, int)                     {}
func (nobody) Swapped(string)                         {}
func (nobody) Cluster(string, Cluster)                {}

// Observer hears what the engine does. Its methods are called by several goroutines at
// once. Where a field or option of this type is nil, nobody listens.
//
// A stage is named as everywhere: "sample.knn", "retrieve.near"; the embedder and the store
// of a knowledge "embed.intents" and "store.intents".
type Observer interface {
	// Batch says that items begin their way through the stages of a pipeline together. The
	// stages get the context that it returns. done is called once, with the results of those
	// that were answered or failed; the others were left.
	Batch(ctx context.Context, pipeline string, items []ObservedItem) (within context.Context, done func([]Result))
	// Call says that a stage is called. The call gets the context that it returns, and done is
	// called at its end.
	Call(ctx context.Context, c StageCall) (within context.Context, done func(CallDone))
	// Request says that a stage wants to send a request to a service. sent is called when it may do
	// so, unless it may not, and then done at the end.
	Request(ctx context.Context, r ServiceRequest) (sent func(), done func(ServiceReply))
	// CacheHits says how many replies of a service a stage took from the response cache.
	CacheHits(pipeline, stage string, hits int)
	// Retried says that a stage is called again after a failure that may pass.
	Retried(pipeline, stage string)
	// Restarted says that the process of a stage ended and was started again.
	Restarted(stage, why string)
	// Knowledge says that a knowledge was brought up to date with its sources, or could not be.
	Knowledge(name string, took time.Duration, err error)
	// Queued says that so many more items wait to be taken into a batch of a pipeline that is
	// being served, or fewer where it is negative.
	Queued(pipeline string, items int)
	// Swapped says that a pipeline that is being served now answers from newer knowledge, or
	// from a changed file.
	Swapped(pipeline string)
	// Cluster says how far a run is whose items other machines answer.
	Cluster(pipeline string, now Cluster)
}

// Cluster is a run on many machines at a moment.
type Cluster struct {
	Workers  map[string]int // how many there are, by their states, such as "working"
	Waiting  int            // batches that no worker has
	UnderWay int            // batches that a worker has
	Done     int            // batches whose results the caller has
}

// ObservedItem is one of a batch.
type ObservedItem struct {
	ID    string
	Trace sdk.Trace // that its caller gave; zero: none
}

// StageCall is one call of a stage with some items.
type StageCall struct {
	Pipeline, Stage string
	Use             string   // the plugin stage
	Model           string   // that its config names; empty: none
	Kind            sdk.Kind // empty: a retrieve stage
	Rows            int
}

// CallDone says how a call of a stage ended.
type CallDone struct {
	RowErrors int   // rows that failed; others may not have
	Err       error // set: all failed
}

// ServiceRequest is one request to a service.
type ServiceRequest struct {
	Pipeline, Stage, Use, Model string
	Kind                        sdk.Kind
	Endpoint                    string // the service's address, without a secret
}

// ServiceReply says how a request ended.
type ServiceReply struct {
	Status sdk.Status // 0: it was not sent, and Err says why
	Usage  sdk.Usage  // as the service reported it
	Cost   float64    // of it, by the stage's price
	Err    error
}

// CallEnded is the CallDone of a call that returned an error; nil: it did its work. Results
// that come later are no errors.
func CallEnded(err error) CallDone {
	var rows sdk.RowErrors
	var later *sdk.Pending
	switch {
	case errors.As(err, &rows):
		d := CallDone{}
		for _, err := range rows {
			if CallEnded(err).Err != nil {
				d.RowErrors++
			}
		}
		return d
	case errors.As(err, &later):
		return CallDone{}
	}
	return CallDone{Err: err}
}
