// Package observe says what the engine reports to those who watch it work: batches of
// items, calls of stages, requests to services, retries, restarts, knowledge.
//
// It is an interface and the types that it needs, so that the engine depends neither on
// a library of metrics nor on one of traces. Package telemetry implements it. Nothing
// here changes what is answered, and nobody waits for an Observer: its methods return at
// once and return no errors.
package observe
