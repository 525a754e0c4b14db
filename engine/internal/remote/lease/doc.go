// Package lease shares the limits, the budget and the circuit breakers of a run among all its
// machines, without a message before each call.
//
// The keeper (Keep: the caller, or a holder that took over) has the accounts: what each holder has
// of each limit. A holder (Hold: a worker) reports what its calls need and have used, every 200 ms,
// and at once when they begin to wait for more. The keeper grants it, for ten seconds, a share of
// each limit's concurrent calls, totals of requests and tokens that it may reach, and a part of the
// budget. A reduced grant counts in full until the holder has reported that it uses less. What a
// worker learns of an endpoint (it asks for fewer calls, is down, answers again) goes to all
// workers directly. If an endpoint is down, only one worker makes the trial call.
//
// Guarantees, and by how much they can be exceeded:
//
//   - Concurrent calls: never above the limit, except for calls of a holder whose lease ended while
//     they were under way (its process crashed or was suspended, or it could not reach the keeper for
//     ten seconds). These are at most its last share, and no longer count for as long as they last.
//   - Requests and tokens per minute: never above the limit within any minute, whatever the delays of
//     messages. A use counts from when the keeper learns of it, a grant until it is used or returned.
//     As on one machine, a call that uses more tokens than it stated exceeds the limit by the rest.
//   - Budget: never exceeded if calls state their maximum usage (sdk.Call.Most). The grant of a holder
//     that never reports again counts as spent: at most the maximum of its calls under way, plus 0.6 s
//     of calls. Near the end of the budget that is at most one call per worker.
//   - Breakers: the other workers know one message later what one learns; calls under way are not
//     cancelled. A lost message is not repeated: each worker then finds out by itself.
//
// A suspended process admits no call when it continues, until it has a new lease: for the holder a lease
// starts before the report was sent, for the keeper after. Clocks of machines are never compared.
//
// The claim to be keeper is in the run's bucket (key "keeper"). It is renewed every 2 s and expires
// after 6 s, or when it is given back. A holder that gets no answer for a second tries to take the
// claim (using Options.Limits), and gives it back when the caller asks. Leases continue meanwhile.
// Before a grant goes out, the keeper writes what its successor must know of rates and budget (key
// "ledger"), by the revision of the previous write. A keeper that has lost its claim cannot write
// the ledger, so it can grant nothing. A new keeper raises no holder's share of concurrent calls
// until all holders of leases have reported to it, or those leases have ended.
//
// The package does not know what services are asked, repeats no call and stores no answers.
package lease
