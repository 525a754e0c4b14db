// Package pending waits for results that a service makes in minutes or hours
// (sdk.Pending), and keeps the handles of such work.
//
// A Book is a folder with a file for each handle: the handle, and the keys of the rows
// that it was given for. It is on the disk before anything is waited for. A key is a
// digest of the stage (package identity) and of all that it sees of the row, its id
// included. So whoever comes by the same row again, in a resumed run, another build or a
// new run, collects with the handle and asks for nothing a second time.
//
// Work stands around the calls of a stage, inside their retries: it divides rows by
// handle, asks for those without one, waits as long as the stage says, and collects,
// until the results are there. A call's timeout and its slot are for the call alone; the
// wait ends with the context, or with the stage.
//
// How long it waits is reported now and then, and what a stage says of how far its service is
// (sdk.Pending.Note) at once and when it changes.
//
// An entry goes once the results of its row are stored (Settle), so that a process that
// is killed between the two costs nothing. A row whose collection fails for good
// (sdk.CodeInvalid) is forgotten: the next attempt asks anew.
//
// The package does not know what rows are, and redacts nothing: package host refuses a
// handle that holds a secret.
package pending
