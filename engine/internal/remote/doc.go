// Package remote holds what others ask racflow for from outside of its process: pipelines that are served (live, serve), and
// one run on many machines over NATS JetStream:
//
//	caller                                   servers                       workers
//	input -> batches ------------------> work queue of the run ----------> stages
//	journal, output <- by position <---- results, each kept once <--------- results
//	limits, budget, breakers ----------> leases ---------------------------> calls of services
//	knowledge, files ------------------> objects by digest ----------------> state folder
//
// The caller is the process of racflow run --on: it reads the input, keeps the journal and writes
// the output as in a run on one machine. Workers (racflow worker) take batches. Neither
// knows the other: all they share is at the servers, so that either may end and another take
// over. Each of these packages knows only those before it:
//
//   - bus: connections, streams, buckets and objects, and what services answered; nothing of pipelines
//   - packet: rows and results as bytes
//   - shipment: the file of a run with all that it reads, and files of knowledge by their digests
//   - lease: limits, budget and breakers of the run, held together
//   - caller: what a run is and how it is, and the run as its caller sees it
//   - worker: taking part in runs
//
// Without it nothing in racflow knows of NATS: package engine has the seam (engine.Remote).
package remote
