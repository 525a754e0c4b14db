// Package stores is the conformance suite of stores. Every call goes to the store and to its model, a
// store of package flat that scores and sorts all entries. Both have to agree. The collections have a
// few hundred entries: on so few, an approximate index has to be exact. Each case works on a
// collection of its own. The documentation of sdk.Store, sdk.Hits and sdk.Filter decides what is
// right. The tests of package sdktest check the model against it, with a store that was written
// independently.
//
// The table of package conformance includes this suite. Package sdktest tests the suite with stores
// that do one thing wrong.
package stores
