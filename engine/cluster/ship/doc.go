// Package ship takes files of a caller's state folder to the state folders of workers.
//
// A local store's collection is a few segments that never change and a log: each is an object at
// the servers, called by the SHA-256 of its content, so that the second run over a knowledge
// uploads what has changed of it, and no worker loads a file twice. A worker keeps what it has
// loaded by its digest below its state folder, and puts it where its stores look for it: by a
// hard link where the file system has those and the content cannot change, by a copy where not.
// Processes that have the earlier content open keep it.
//
// What is broken off goes on where it was: objects that are whole at the servers, and files that
// are whole at the worker, are not sent again.
//
// It knows nothing of stores and pipelines: which files a run needs says engine.Pipeline.Shipment.
package ship
