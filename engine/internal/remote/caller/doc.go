// Package caller is a run on many machines as its caller sees it: the process of racflow run --on,
// which has the input, the journal and the output.
//
// A Caller is an engine.Remote. Batches that package run gives it go into the work queue of the run
// at the next position, and each waits for the result of its position; one reader of the results
// hands them out. A result that nobody waits for any more is dropped: it is at the servers.
//
// # Parts
//
// A run that is resumed begins another part, whose positions count anew. Its beginning is, in this
// order: the state says which part it is; batches of earlier parts that nobody has taken are dropped;
// what is stored of them by then goes to the journal; the state says how much that was; the rest of
// the input is published. An item of a batch that a worker had at that time is answered twice, and
// its answer in the new part counts: paid calls are repeated only where they were under way, since
// answers of services are kept in a bucket by their key before they count. A
// resumed run whose definition has changed, or that had come to its end, is removed after its results
// are in the journal, and begins anew under another ID, so that no worker mixes both up.
//
// # The end
//
// End puts the key end, so that workers leave and nothing is answered any more. The journal is
// closed and the output renamed after that, and only then Remove takes the streams away. Who dies in
// between leaves a run with an end at the servers: a resumed run takes from it what its journal
// lacks, and Sweep of a later caller removes it after a day. A run that ends early has no end and
// stays; batches that no worker has begun are taken out of its queue, so that nobody pays for what was
// interrupted.
//
// # Memory
//
// Batches under way are bounded by items: floorItems, or two batches for each batch that workers can
// have in hand, at most maxItems. Rows are read ahead up to maxItems; of each item, the caller holds the
// row, and the result from when it is stored until those before it have been written. So a first batch that
// is missing for long, as one that kills its workers, has it hold the results of up to maxItems.
//
// # Detached
//
// A detached caller publishes all of its input and leaves; the leases are kept by a worker then. Attach
// comes back, from any machine: it takes rows and results from the servers in the order of the input.
//
// The package knows nothing of how workers answer. It writes neither journal nor output: its only files are
// results of a detached run that are not taken yet, and the cache of answers.
package caller
