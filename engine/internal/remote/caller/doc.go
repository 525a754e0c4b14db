// Package caller is the caller's side of a run on many machines: the process of racflow run --on,
// which has the input, the journal and the output.
//
// A Caller is an engine.Remote. It puts the batches of package run into the run's work queue, each
// at the next position. Each waits for the result of its position; one goroutine reads the results
// and delivers them. A result for which no call waits is dropped, since the servers still have it.
//
// # Resuming
//
// A resumed run is a new one at the servers: the earlier one gets the key end, so that its workers leave; the
// results stored so far go to the journal, and the answers of services to this machine; it is removed; the rest of
// the input is published under another ID. Only calls that were under way are paid for twice, because answers of
// services are stored by their key before they count. A caller that was suspended meanwhile finds its run gone, and
// ends.
//
// # The end
//
// End writes the key end, so that workers leave and answer nothing more. Then the journal is closed
// and the output renamed, and only then Remove deletes the streams. If the caller crashes in
// between, a run with the key end stays at the servers: resuming it copies the missing results into
// the journal, and Sweep of a later caller removes it after a day. A run that is interrupted has no
// key end and stays; batches that no worker has begun are removed from its queue, so that they cost
// nothing.
//
// # Memory
//
// At most maxItems are under way. The caller reads up to maxItems rows ahead. It holds each item's row, and each
// result until all results before it have been written. So if one early batch is missing for long, for example
// because it crashes its workers, the caller holds results of up to maxItems.
//
// # Workers
//
// The caller reads the status of the run from time to time (status.go), as racflow runs show does, and says what has
// changed. A worker's last state stays when it leaves, so that sums include what it did.
//
// # Detached
//
// A detached caller publishes its whole input and leaves; then a worker admits the calls. Attach, from
// any machine, later reads rows and results from the servers in the order of the input.
//
// The package does not know how workers answer. It writes neither journal nor output, only the
// response cache.
package caller
