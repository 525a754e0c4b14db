// Package governor controls the calls that the stages of a run make to services: limits,
// budget, circuit breakers, profiles of models and the response cache. A Governor belongs to a run; each stage
// gets the sdk.Host that Stage returns.
//
// A call is admitted when all of these allow it:
//
//   - Its limit (limiter): concurrent calls, and calls and tokens within any minute. Stages
//     that name the same limit block share it; stages without one share a limit per
//     endpoint. A limit admits the waiting calls of one stage in order, and its stages in
//     turns.
//   - Its endpoint (breaker): a service that asks for fewer calls gets none for as long as it
//     said, or for a pause that grows with every further refusal. One that failed several
//     times in a row gets a few calls a second, until it answers or, after five seconds,
//     counts as down. Then its circuit is open: calls fail at once, and from time to time a
//     trial call is admitted (half-open). A service that never answered is treated alike: it
//     may be starting.
//   - The budget: what was spent and what calls in flight can cost at most leave room for
//     it. Otherwise the call waits for those in flight; when there are none, all stages
//     stop. So a run keeps its budget where every call says what it takes at most
//     (sdk.Call.Most). For a call that does not, the rough estimate is reserved, the run may
//     exceed its budget by the difference, and the log says so once per stage. The
//     reservation is what a call counts for when its cost is unknown: its caller gave up,
//     its reply was lost, or its service reports no usage, or more than any call can take.
//
// For a required stage (Stage.Required) an open circuit is no answer: its calls wait up to
// two minutes for the service, which gets a last trial then. The stage is stopped if the
// service stays down, denies the stage's first calls or later many in a row, or refuses all
// calls as too many for five minutes; other stages continue. An unknown host counts as down
// as well: the name of a container resolves only once it has started.
//
// Where others answer the items of a stage meanwhile (Cover), its calls do not wait for a service that is down, and a
// circuit opens after three failures that are the service's. It gets a trial after one second, then two, and so on.
//
// Waits says what the calls of each stage wait for: package terminal reports it.
//
// Tokens count towards a limit as estimated from the moment a call is admitted, and as
// reported from its end on.
//
// The package knows neither HTTP nor models, and does not retry: an admitted call may still
// fail, and others decide whether to repeat it.
package governor
