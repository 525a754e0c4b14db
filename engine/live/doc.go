// Package live keeps pipelines open for as long as a program serves them: several files in one
// process, warm, so that an answer costs the work on it alone.
//
// Single requests under load travel together. No timer makes them wait: a request goes at once
// while fewer batches are under way than keep the stages busy, and what waits when one of them is
// done makes the next (queue.go). Batches are answered side by side, so that a slow item holds up
// those that travel with it and no others; where a stage asks a service, each item travels alone.
// A full queue refuses (ErrBusy). A caller that does not wait any more is forgotten, and a batch
// that nobody waits for ends.
//
// What a pipeline serves is a version of it (version.go): the file as it was, its knowledge, and
// processes of its own. A change, or Rebuild, makes another version beside it, which takes over
// once it is complete; the one before ends with its last request. A file or source that became
// wrong leaves the version that serves as it is, and Status says why.
package live
