// Package stores is the conformance suite of stores. What is done with a store is done with its model, too, a
// store of package flat that scores and sorts everything, and both have to agree: on collections of a few
// hundred entries, since on so few an approximate index has to be exact. Each case works on a collection of its
// own. What sdk.Store, sdk.Hits and sdk.Filter say is what counts; the tests of package sdktest hold the model to
// it with a store that was written apart from it.
//
// Package conformance has it in its table. Package sdktest tests it with stores that do one thing wrong.
package stores
