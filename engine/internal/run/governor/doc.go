// Package governor controls the calls that the stages of a run make to services: limits, budget,
// circuit breakers, profiles of models and the response cache. Each run has one Governor; each
// stage gets the sdk.Host that Governor.Stage returns.
//
// A call is admitted when all three of these allow it:
//
//   - Its limit (limiter): concurrent calls, and calls and tokens within any minute. Stages that
//     name the same limit block share this limit. Other stages share one limit per endpoint: eight
//     calls at a time or, for a service on this machine, the concurrency with the highest
//     throughput (pace). A limit admits the waiting calls of one stage in order, and its stages in
//     turns.
//   - Its endpoint (breaker): a service that asks for fewer calls gets none for the time that it
//     names. If it names no time, the pause grows with every further refusal. After several
//     failures in a row a service gets only a few calls a second. If it still fails after five
//     seconds, it counts as down and its circuit opens: calls fail at once, and from time to time
//     one trial call is admitted (half-open). The same holds for a service that never answered,
//     since it may be starting.
//   - The budget: it needs room for the call beside what was spent and the maximum cost of the
//     calls in flight. Without room the call waits for the calls in flight; if there are none, all
//     stages stop. So a run keeps its budget if every call states its maximum usage
//     (sdk.Call.Most). For other calls the budget reserves a rough estimate: the run may exceed its
//     budget by the difference, which is logged once per stage. If the cost of a call is unknown,
//     its reservation counts: the caller gave up, the reply was lost, or the service reports no
//     usage, or an impossible one.
//
// An open circuit does not fail the calls of a required stage (Stage.Required): they wait up to two
// minutes for the service, which then gets a last trial. The stage stops if the service stays down,
// denies the stage's first calls or many later ones in a row, or refuses all calls as too many for
// five minutes; other stages continue. A service whose host name does not resolve also counts as
// down, because the name of a container resolves only after the container has started.
//
// If other stages answer a stage's items meanwhile (Cover), the stage's calls do not wait for a service that is down,
// and the circuit opens after three failures of the service itself. Trials follow after one second, then two, and so
// on.
//
// Waits reports what the calls of each stage wait for; package terminal prints it.
//
// A limit counts the estimated tokens of a call from its admission, and the reported tokens from
// its end.
//
// The package knows neither HTTP nor models, and does not retry: an admitted call may fail, and
// callers decide whether to repeat it.
package governor
