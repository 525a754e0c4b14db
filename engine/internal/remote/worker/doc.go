// Package worker takes part in runs of other processes: it opens their pipelines, takes batches and
// answers them, until it is asked to end.
//
// A worker checks all runs at the servers, oldest first, and takes part in a few at a time. If a run has had
// no work for a while, the worker replaces it by a waiting one. A run needs the same racflow version,
// plugins, models and secrets as its caller has, and stages that have learnt the same from the same knowledge
// (engine.Pipeline.Join). The worker stores what it lacks in its state at the servers, where the caller and
// racflow runs show read it together with the machine's name, and tries again now and then. It takes no batch
// until everything matches, so that versions do not mix.
//
// A worker stores the answer of a batch before it acknowledges the batch. If it crashes in between, the batch
// is answered again, and the first answer stands. So a worker that was suspended for long does no harm: its
// late answers are dropped silently. If the servers have not heard from a worker for the length of a claim,
// it drops its batch, because another worker has it and both would pay for the same calls. A batch that was
// handed out many times gets an answer with failed items, because it may be what crashes workers.
//
// If the stages cannot continue here, the worker returns its batches to the queue and opens the
// pipeline again. Only if other workers have had them, too, does the run learn that stages had to
// stop: one machine without a network must not end the run of hundreds.
//
// The package does not define runs (packages caller and shipment do), nor how often services may be
// called (package lease).
package worker
