// Package simulation runs the engine through histories that one seed decides. Machines die at any
// step. Disks are full, or lose what was not synced. Services are slow, fail or lie.
//
// A history is a test in a bubble with its own time (testing/synctest). Everything above these seams
// is real:
//
//	files             sdk/support.Watch: a disk that knows what is synced
//	engine to stages  workspace.Options.Start: the stages' own server, in memory
//	services          HTTP over pipes
//
// Whatever goes through a seam to a stage or a service waits for its turn. The next turn is drawn
// once everything else is at rest. So a seed decides the order of events, and a history that failed
// can be repeated:
//
//	go test ./engine/internal/simulation -first 4711 -seeds 1 -v
//
// The package has only tests.
package simulation
