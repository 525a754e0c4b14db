// Package live keeps pipelines open for as long as a program serves them: several files in one
// process, warm, so that an answer costs the work on it alone.
//
// Single requests under load travel together (queue.go). No timer makes them wait: a request goes
// at once where nothing is under way, else with others once they are as many as travel together
// already, or when those are done. Batches are answered side by side, so that a slow item holds up
// those that travel with it and no others; where a stage asks a service, each item travels alone.
// A full queue refuses (ErrBusy). A caller that does not wait any more is forgotten, and a batch
// that nobody waits for ends.
//
// What a pipeline serves is a version of it (version.go): the files as they were, its knowledge, and
// processes of its own. Where something has changed, another version is made beside it and
// takes over once it is complete; the one before ends with its last request (pipeline.go). That
// happens on call and, with Options.Watch, when a file has changed that answers depend on (watch.go).
// A file or source that became wrong leaves the version that serves as it is, and Status says why.
//
// A collection that another program makes is looked at every few seconds. Its rows are searched as they are at any time;
// another version takes over where another collection stands behind its name, or the number of
// its entries has moved so far that labels and centroids are read again.
//
// Other knowledge of a version is an edition, which nobody changes (package generation): neither
// another build, nor a run over the same file, nor a stage that is killed and starts again can mix two
// states of it. While a version serves, it holds its editions, so that nobody removes them; with
// the last version that searches one, on this machine or another, it goes. What is unchanged in it has
// its vectors from the cache.
//
// A stage that ends is started again by package host, and the request is sent again. A version
// that cannot answer any more, since a stage is not started again or a service stayed down until its
// voter was stopped, is replaced (keep.go).
//
// Stages that are the same in two pipelines are two processes: a version ends with its own, whatever
// becomes of others, and the memory that a file allows is that of its pipeline. Pipelines that are added to a
// file later are not served before the program starts again.
//
// The package knows no protocol: HTTP and others are below package serve.
package live
