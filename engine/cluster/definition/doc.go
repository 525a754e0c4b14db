// Package definition has what the parts of a run on many machines tell each other in words that
// outlive them: what the run is, and the small state of who takes part in it.
//
// The definition is written once, by the caller, when the run begins. Workers read it and open the
// same pipeline by it; whoever attaches to the run later writes its output by it. It has no
// secrets, and neither the input nor the sources of the knowledge.
//
// Keys name values in the state bucket of the run:
//
//	caller        CallerState, put by the caller as it works
//	worker.NAME   Worker, put by each worker every WorkerEvery
//	attached      the name of who attached to the run last
//	end           the run is over: workers leave
//
// It holds values, and neither reads nor writes them at the servers: packages caller and worker do.
package definition
