// Package bus stores and exchanges, with NATS JetStream, what the processes of a run on many machines share: a queue of
// batches, their answers by position, small state, answers of services, questions and files. It hides streams,
// consumers, lost connections and servers without a quorum from the rest of racflow: an operation succeeds, or waits
// until the servers can do it, and the package reports a wait once (Options.Waiting). An operation fails only if its
// context ends, the servers refuse it for good, or the run has been removed (ErrNoRun).
//
// The package knows nothing of pipelines, rows or limits: batches, results and values are bytes.
//
// A run ID has at the servers:
//
//	stream racflow_ID_items       racflow.ID.items.PART.SEQ    work queue, one durable consumer "workers"
//	stream racflow_ID_results     racflow.ID.results.PART.SEQ  answers: the first of a position stands
//	                              racflow.ID.definition        what the run is; it stands, too
//	                              racflow.ID.pieces.UNIQUE.N   data too large for one message; header Racflow-Pieces refers to them
//	bucket racflow_ID             $KV.racflow_ID.KEY           state, one value for a key
//	bucket racflow_ID_answers     $KV.racflow_ID_answers.answer.KEY   answers of services: the first of a key stands
//	bucket racflow_runs           $KV.racflow_runs.ID          index; shared by all runs
//	bucket racflow_files          $KV.racflow_files.DIGEST.>   files by digest, in pieces; shared by all runs
//	no stream                     racflow.ID.ask.SUBJECT, racflow.ID.tell.SUBJECT
//
// What runs share under a NAME (Share) has the two buckets and the subjects of an ID shared-NAME.
//
// "The first stands" is enforced by the streams (one message per subject, new ones are discarded), so it holds for the
// life of the run and even against somebody with a worker's key. A process that repeats an operation after losing the
// acknowledgement needs no other care: what it finds stored is as good as its own.
//
// The index lists a run as unfinished from before its first stream is created until all are, and while they are removed.
// Only the caller's Sweep sees such a run.
//
// The package reads from the leader of a stream and not from replicas, which may lag: buckets have direct reads switched off.
// Only Results and Watch read through consumers, because delays do not harm them. Such a consumer lives in the
// memory of one server and may be lost with it; the package then creates another one that starts after the last message
// received. Ordered consumers of nats.go do the same, but do not miss a message that is lost between two servers
// until another one arrives, which a caller that waits for the last result would wait for in vain. The watchers and object
// stores of nats.go read through push consumers, which do not reach the account of workers (examples/cluster).
//
// A batch may be acknowledged twice, or after it was handed to another worker, because its answer is stored before.
//
// The rights in examples/cluster/accounts.conf are those that callers and workers need; tests take runs through with them. They
// cover the subjects of requests. A request also names a reply subject, and servers send replies there whatever the user may
// publish: that is why workers have an account of their own.
package bus
