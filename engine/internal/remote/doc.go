// Package remote lets other processes use racflow: it serves pipelines (live, serve), and spreads
// one run over many machines with NATS JetStream:
//
//	caller                                   servers                       workers
//	input -> batches ------------------> work queue of the run ----------> stages
//	journal, output <- by position <---- results, each kept once <--------- results
//	limits, budget, breakers <---------- each call <-------------------------- calls of services
//	knowledge, files ------------------> objects by digest ----------------> state folder
//
// The caller is the process of racflow run --on: it reads the input, keeps the journal and writes
// the output as in a run on one machine. Workers (racflow worker) answer batches. Caller and
// workers never connect to each other. They share all state through the servers, so either may end
// and another take over. Each of these packages knows only those listed before it:
//
//   - bus: connections, streams, buckets, objects and answers of services; nothing of pipelines
//   - packet: encodes rows and results
//   - shipment: the pipeline file of a run with all files that it reads, and knowledge files by digest
//   - lease: the run's limits, budget and breakers, for all machines together
//   - caller: definition and status of a run, and the caller's side of it
//   - worker: the workers' side of runs
//
// No other package of racflow knows NATS: package engine only has an interface (engine.Remote).
package remote
