// Package caller is the caller's side of a run on many machines: the process of racflow run --on,
// which has the input, the journal and the output.
//
// A Caller is an engine.Remote. It puts the batches of package run into the run's work queue, each
// at the next position. Each waits for the result of its position; one goroutine reads the results
// and delivers them. A result for which no call waits is dropped, since the servers still have it.
//
// # Parts
//
// Resuming a run starts another part with new positions, in these steps: the state names the new
// part; batches of earlier parts that no worker has taken are dropped; the results stored so far go
// to the journal; the state records how many they were; the rest of the input is published. An item
// in a batch that a worker had at that time is answered twice, and its answer in the new part
// counts. Only calls that were under way are paid for twice, because answers of services are stored
// by their key before they count. If the definition has changed, or the run had ended, its results
// go to the journal, the run is removed, and a new one starts under another ID, so that no worker
// confuses the two.
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
// Items under way are limited to floorItems, or to two batches for each batch that workers can work on, and
// to maxItems at most. The caller reads up to maxItems rows ahead. It holds each item's row, and each result
// until all results before it have been written. So if one early batch is missing for long, for example
// because it crashes its workers, the caller holds results of up to maxItems.
//
// # Detached
//
// A detached caller publishes its whole input and leaves; then a worker admits the calls. Attach, from
// any machine, later reads rows and results from the servers in the order of the input.
//
// The package does not know how workers answer. It writes neither journal nor output, only the
// response cache and a file of a detached run's unread results.
package caller
