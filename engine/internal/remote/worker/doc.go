// Package worker takes part in runs that others have begun: it opens their pipelines, takes
// batches and answers them, until it is asked to end.
//
// A worker looks at all runs at the servers, oldest first, and takes part in a few at a time. One
// that has had nothing to do for a while makes room for others that wait. For a run it needs the racflow
// that began it, its plugins, models and secrets, and stages that have learnt the same from the same
// knowledge (engine.Pipeline.Join). What it lacks is in its state at the servers, where the caller
// and racflow runs show find it with the machine's name, and it tries again now and then. No batch
// is taken before all of that holds, so versions that disagree do not mix.
//
// A batch is answered at the servers before it is acknowledged: whatever ends in between, it is
// answered again, and the first answer stands. So a worker that was stopped for long and wakes does
// no harm, and its late answers are dropped without a word. A worker from whom the servers have not
// heard for as long as a claim lasts drops its batch: another has it, and both would pay for the
// same calls. So it does with batches of an earlier part, once a run has been resumed. A batch that
// was given out many times is answered with failed items, for it may be what ends workers.
//
// Where the stages cannot go on here, the worker gives its batches to others and opens the pipeline
// anew. Only where others have had them, too, does the run hear that stages had to stop: one
// machine without network is no reason to end the run of hundreds.
//
// The package does not say what a run is (packages caller and shipment), nor who may call
// services how often (package lease).
package worker
