// Package bus is what the processes of a run on many machines share at the servers, by NATS JetStream: a queue of batches, the answers
// by position, small state, answers of services, questions and files. It exists so that nothing else in racflow knows of streams,
// consumers, lost connections and servers without a quorum: what is asked of it is done, or waits until the servers can do it, and that
// it waits is reported once (Options.Waiting). Only the end of a context, a refusal that does not pass, and a run that is gone (ErrNoRun)
// end it.
//
// It knows nothing of pipelines, rows or limits: batches, results and values are bytes.
//
// What a run ID has at the servers:
//
//	stream racflow_ID_items       racflow.ID.items.PART.SEQ    work queue, one durable consumer "workers"
//	stream racflow_ID_results     racflow.ID.results.PART.SEQ  answers: the first of a position stands
//	                              racflow.ID.definition        what the run is; it stands, too
//	                              racflow.ID.pieces.UNIQUE.N   data too large for one message; header Racflow-Pieces refers to them
//	bucket racflow_ID             $KV.racflow_ID.KEY           state, one value for a key
//	bucket racflow_ID_answers     $KV.racflow_ID_answers.answer.KEY   answers of services: the first of a key stands
//	bucket racflow_runs           $KV.racflow_runs.ID          index; shared by all runs
//	objects racflow_files         $O.racflow_files.C|M.>       files by digest; shared by all runs
//	no stream                     racflow.ID.ask.SUBJECT, racflow.ID.tell.SUBJECT
//
// "The first stands" is the streams' own rule (one message for a subject, new ones are discarded), so it holds for the life of the run
// and against anybody with a worker's key. A message carries a number of its publishing (header Racflow-Id): whoever repeats it because
// the servers' word was lost knows its own by that.
//
// Reading is from the leader of a stream, never directly from replicas, which may lag; only Results, Answers, Follow and Watch read
// through consumers, for which being late does no harm. These consumers live in the memory of one server and may be lost with it: another
// begins behind the last message that arrived. (nats.go's ordered consumers do the same, but notice what was lost on the way only when
// the next message comes.) Acknowledging a batch twice, or after it was handed to another, does no harm either,
// since its answer is stored before.
//
// Permissions lists the subjects that callers and workers need, by prefix; a test holds it against a server.
package bus
