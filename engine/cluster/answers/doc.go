// Package answers is the response cache of a run on many machines: what a service answered to one
// worker, the others need not ask for.
//
// A worker's Cache takes the place of the response cache of its state folder
// (engine.Services.Responses). It looks there, then in the run's bucket at the servers, and then asks
// the caller for what its response cache has of earlier runs. What a service answers is in the folder
// and in the bucket before it counts: from then on it survives every machine of the run. Of workers
// that asked the same at the same time, the first one's answer is what all read later. Where earlier answers
// are not to count (governor.Refresh), the bucket alone is looked into: it has what this run kept.
//
// While the servers cannot be reached, a look and an answer that is to be kept wait for them; the answer is in the
// worker's folder meanwhile.
//
// The caller's side (Serve) answers what workers ask, and brings what they kept into the caller's
// response cache, so that a later run on that machine pays for nothing again.
//
// Workers that ask the same before one of them has an answer all pay: nobody waits for another
// machine's call.
package answers
