package outcome

import (
	"context"
	"time"

	"github.com/racflow/racflow/engine/internal/progress"
	"github.com/racflow/racflow/sdk"
)

// This file defines the engine's reports to observers: batches of items, calls of stages, requests
// to services, retries, restarts, knowledge.
//
// An interface keeps the engine independent of metrics and tracing libraries; package telemetry
// implements it. Observers change no answers, and the engine does not wait for them: methods return
// at once and return no errors.

// ObserverOr returns o, or an Observer that does nothing if o is nil.
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
func (nobody) Call(ctx context.Context, _ progress.StageCall) (context.Context, func(progress.CallDone)) {
	return ctx, func(progress.CallDone) {}
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

// Observer gets reports of the engine's work. Several goroutines call its methods at once. If a
// field or option of this type is nil, nothing is reported.
//
// Stages have their usual names: "sample.knn", "retrieve.near"; the embedder and the store of a
// knowledge are "embed.intents" and "store.intents".
type Observer interface {
	// Batch reports that items start together through the stages of a pipeline. The stages get the
	// returned context. done is called once, with the results of the items that were answered or
	// failed; the others were left.
	Batch(ctx context.Context, pipeline string, items []ObservedItem) (within context.Context, done func([]Result))
	progress.CallObserver
	// Request reports that a stage wants to send a request to a service. sent is called when the
	// request is admitted; done is called at the end.
	Request(ctx context.Context, r ServiceRequest) (sent func(), done func(ServiceReply))
	// CacheHits reports how many replies of a service a stage took from the response cache.
	CacheHits(pipeline, stage string, hits int)
	// Retried reports that a stage is called again after a failure that may pass.
	Retried(pipeline, stage string)
	// Restarted reports that the process of a stage ended and was started again.
	Restarted(stage, why string)
	// Knowledge reports that a knowledge was updated from its sources, or why not.
	Knowledge(name string, took time.Duration, err error)
	// Queued reports by how many items the queue for batches of a served pipeline grew, or shrank
	// (negative).
	Queued(pipeline string, items int)
	// Swapped reports that a served pipeline now answers from newer knowledge, or from a changed
	// file.
	Swapped(pipeline string)
}

// ObservedItem is an item of a batch.
type ObservedItem struct {
	ID    string
	Trace sdk.Trace // from the caller; zero: none
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
	Cost   float64    // of Usage, by the stage's price
	Err    error
}
