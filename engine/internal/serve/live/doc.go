// Package live keeps the pipelines of several files open and warm in one process, so that an answer
// costs only the work on it.
//
// Single requests under load are batched (queue.go), but no timer delays them: a request starts at
// once if none is under way. Otherwise it starts with other waiting requests, as soon as they are
// as many as a present batch, or when those batches are done. Batches run in parallel, so that a
// slow item delays only its own batch. If a stage asks a service, each item is its own batch. A
// full queue rejects requests (ErrBusy). A request whose caller has given up is dropped, and a
// batch without callers ends.
//
// A pipeline serves a version (set.go): its files at one time, its knowledge, and processes of its
// own. After a change, a second version is built beside the first and takes over once it is
// complete; the first ends with its last request (pipeline.go). That happens on call and, with
// Options.Watch, when a file has changed that answers depend on (watch.go). If a file or source has
// become invalid, the version that serves stays, and Status gives the reason.
//
// A collection of another program is checked every few seconds. Searches always see its present
// rows. Another version takes over if another collection takes its name, or if the number of its
// entries has changed so much that labels and centroids have to be read again.
//
// A version searches an edition of its other knowledge, which never changes (package generation):
// no build, no other run over the same file and no restarted stage can mix two states of it. While
// a version serves, it holds its editions, so that they are not removed; an edition is removed with
// the last version that searches it, on this machine or another. Unchanged parts of a new edition
// take their vectors from the cache.
//
// Package host restarts a stage whose process has ended, and repeats the request. A version that
// can no longer answer, because a stage is not restarted, or because a service stayed down until
// its voter was stopped, is replaced (watch.go).
//
// Equal stages of two pipelines are two processes, so that a version can end with its own
// processes, and so that a file's memory limit applies to one pipeline. Pipelines that are added to
// a file later are served only after a restart of the program.
//
// The package knows no protocol: package serve implements HTTP and others.
package live
