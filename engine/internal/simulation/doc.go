// Package simulation takes the engine through histories that one seed decides: machines that die at any step, disks that lose
// what was not forced to them, or are full, services that are slow, fail or lie.
//
// A history is a test in a bubble of time of its own (testing/synctest). What is real is everything above its seams:
//
//	files             sdk/support.Watch: a disk that knows what is forced to it
//	engine to stages  engine.Options.Start: the stages' own server, in memory
//	services          HTTP over pipes
//
// Whatever wants to go through a seam to a stage or a service waits for its turn. The next turn is drawn once all else has
// come to rest, so that a seed decides the order of events, and the history of one that fails happens again:
//
//	go test ./engine/internal/simulation -first 4711 -seeds 1 -v
//
// The package has tests only.
package simulation
