// Package lease holds the limits, the budget and the circuit breakers of a run for all machines
// that take part in it, so that no worker asks before each call.
//
// A keeper (Keep: the caller, or a holder that took over) has the accounts: what each holder has of each
// limit. A holder (Hold: a worker) reports every 200 ms, and at once when its calls begin to wait for
// more, what its calls need and used, and is granted for ten seconds: a share of each limit's calls
// at a time, how many requests and tokens it may have used in all, and how much of the budget.
// Whatever is made smaller counts in full until the holder has reported that it is.
// What a worker learns of an endpoint (it asks for fewer calls, is down, answers again) goes to all workers
// directly; of an endpoint that is down, one worker makes the trial call.
//
// What is promised, and by how much it can be exceeded:
//
//   - Calls at a time: never more than the limit, but for calls of a holder whose lease ended while
//     they were under way: its process died or stood still, or it could not reach the keeper for ten
//     seconds. They are at most its last share, and count no more for as long as they last.
//   - Requests and tokens per minute: never more than the limit within any minute, however
//     grants travel. A use counts from when the keeper heard of it, and a grant until it is used or given back.
//     As on one machine, a call that takes more tokens than it said exceeds the limit by that.
//   - Budget: never exceeded where calls say what they take at most (sdk.Call.Most). What a holder
//     had been granted that never reports again counts as spent: at most what its calls under way
//     may take, and what its calls of 0.6 s take. Near the end that is no more than one call per worker.
//   - Breakers: what one worker learns, the others know one message later; calls under way are not
//     called back. A message that is lost is not repeated: each then learns it for itself.
//
// A process that stands still admits nothing when it goes on, until it has a new lease: a lease counts
// from before the report was sent, for the keeper from after it. No clocks are compared between machines.
//
// The claim to keep the accounts stands in the run's bucket (key "keeper"), is renewed every 2 s and is
// over after 6 s, or when it is given back. A holder that was not answered for a second tries to take it
// (Options.Limits are what it keeps to), and gives it back when the caller asks. Meanwhile leases
// go on. What the next keeper must know of rates and of the budget (key "ledger") is written before
// a grant that relies on it goes out, by the revision of the one before: a keeper that lost its
// claim cannot write it, so it can grant none. The next keeper gives nobody more calls at a time than it
// has until all that hold leases have reported to it, or those leases are over.
//
// It does not know what is asked of services, repeats no call and keeps no answers.
package lease
