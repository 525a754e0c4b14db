// Package batchjob lets stages ask a language model many questions in one job of a service,
// whose answers come within hours and cost less: the stage is Pending meanwhile.
//
// A Service is where such jobs are sent: OpenAI is the one of OpenAI's batch files, which
// gateways have as well, and Anthropic that of its message batches. Jobs are a stage's use of one.
//
// A stage does nothing else than for single calls. Jobs.Do calls its work with a context
// whose requests it takes (api.Courier). At first none has a reply: the rows fail for that,
// and all requests that were made become one job. Once the job has ended the same work is
// done again, now with the replies, and reads, counts and caches them as those of single
// calls, under the same keys. A request that has no reply then becomes part of one more job:
// one that failed in a way that may pass, one that the service had no time for, or one that
// the stage makes because of a reply (fewer choices than it asked for, a field that the
// server refuses). What failed for good fails its rows alone.
//
// What was cached when the rows were first asked about is noted beside the answers, and the
// work sees nothing else of the cache when it is done again: so it makes the same requests
// however often it was interrupted while it read replies.
//
// A job bears a mark, a digest of its requests. A process that was killed after it had
// created a job and before anybody knew its handle finds it by that (Service.Find), and a
// file that was uploaded and never used is harmless. What a job may cost is reserved from
// before it is sent until its replies are read, and again by a process that comes later
// (sdk.Call.Batch).
//
// Requests and replies lie in temporary files meanwhile, since there may be hundreds of
// megabytes of them: for each of them some 200 bytes are held in memory.
//
// The package does not wait, and keeps no handle on the disk: package pending of the engine
// does both.
package batchjob
