// Package stores is the conformance suite of stores. A store is compared with a model
// that scores and sorts everything, on collections of a few hundred entries; on so
// few an approximate index has to be exact. Each case works on a collection of its
// own. What sdk.Store, sdk.Hits and sdk.Filter say is what counts.
//
// Package conformance has it in its table. Package sdktest tests it with stores that do one thing wrong.
package stores
