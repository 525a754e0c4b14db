// Package live keeps the pipelines of several files open and warm in one process, so that an answer
// costs only the work on it.
//
// Single requests under load are batched (queue.go), but no timer delays them: a request starts
// immediately if no batch is under way. Otherwise it waits until the waiting requests are as many
// as the average batch under way, or until these batches are done. Batches run in parallel, so that
// a slow item delays only its own batch. If a stage asks a service, each item is its own batch. A
// full queue rejects requests (ErrBusy). A request whose caller has given up is dropped, and a
// batch without callers ends.
//
// A pipeline serves one version (set.go): its files at one time, its knowledge, and its own
// processes. After a change, a second version is built beside the first, and takes over when it is
// complete; the first version ends with its last request (pipeline.go). A new version is built on
// request and, with Options.Watch, after a change of a file that answers depend on (watch.go). If a
// file or source has become invalid, the present version stays, and Status gives the reason.
//
// A collection of another program is checked every few seconds. Searches always see its present
// rows. A new version takes over if another collection gets its name, or if the number of entries
// has changed so much that labels and centroids have to be read again.
//
// For other knowledge, a version searches an edition, which never changes (package generation): no
// build, no other run over the same file and no restarted stage can mix two states of it. While a
// version serves, it holds its editions, so that they are not removed. An edition is removed with
// the last version that searches it, on this machine or another. A new edition takes the vectors of
// unchanged parts from the cache.
//
// Package host restarts a stage whose process has ended, and repeats the request. A version is
// replaced if it can no longer answer: a stage was not restarted, or a service stayed down until
// its voter was stopped (watch.go).
//
// Two pipelines never share a process, even for equal stages. So a version can end its processes,
// and a file's memory limit applies to one pipeline. Pipelines added to a file later are served
// only after a restart of the program.
//
// The package implements no protocol: package serve implements HTTP and others.
package live
