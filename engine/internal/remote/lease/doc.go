// Package lease shares the limits, the budget and the circuit breakers of a run among all its machines.
//
// One process is the keeper (Keep: the caller, or a holder that took over). Its Governor, the same that a local run has,
// admits the calls of all machines. A holder (Hold: a worker) sends the keeper a report as soon as a call waits or has
// ended, and from time to time. A report names all calls of the holder, so a lost one does no harm. The keeper answers
// which calls may be sent, and tells the holder of later decisions.
//
// Guarantees, whatever messages are lost or late:
//
//   - Concurrent calls: never above the limit, except for calls of a holder that the keeper has not heard of for ten seconds
//     (its process crashed or was suspended, or it could not reach the keeper). They no longer count.
//   - Requests and tokens per minute: never above the limit within any minute. A call counts without an end from its
//     admission until its holder is known to have sent it, and then for a minute. As on one machine, a call that uses more
//     tokens than it stated exceeds the limit by the rest.
//   - Budget: never exceeded if calls state their maximum usage (sdk.Call.Most). Calls under way of a holder that is
//     silent for ten seconds count as spent with their maximum, and once more if it comes back. So do calls under way where
//     the keeper changes; after a crash they count three times.
//   - Breakers: the keeper refuses calls of a service that is down, and admits one trial call at a time.
//
// An admission holds for two seconds from when the report was sent that it answers, so a suspended process begins no call when it
// continues. Clocks of machines are never compared.
//
// The claim to be keeper is a Record in the bucket of the run (Key). It is renewed every 2 s and over after 6 s, or when it
// is given back. A holder that gets no answer tries to take the claim. Meanwhile no call begins. The record holds what a
// successor must know, and is written before a decision goes out that it does not cover: the holders, and a ceiling of what
// is spent and reserved, which the successor counts as spent. It admits no call until all holders have reported what is under
// way, or ten seconds are over. It counts the last minute of every limit as used in full, unless the claim was given back.
//
// The package repeats no call and stores no answers.
package lease
