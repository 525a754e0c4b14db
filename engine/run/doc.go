// Package run takes items through the stages of a pipeline.
//
// Items travel in batches. A few batches are under way at a time, which is
// all the back-pressure there is: a batch is read only when one has been
// answered. Within a batch a stage starts as soon as the stages that it needs
// are done, so independent stages (the voters) work at the same time. Answers
// come out in the order of the input.
//
// For each stage the order is: when (per item), filter, the call with its
// retries, keep or accept, fallback, on_error. An item that fails does so alone, with
// the stage and the cause; the others of its batch go on.
//
// The package knows stages by the interfaces of the sdk and starts no process
// itself; Options.Launch does.
package run
