// Package calls is what the stages of a run share when they call services: it
// admits their calls, counts them, and keeps their answers. A Control belongs to
// a run; each stage gets the sdk.Host that Stage returns.
//
// A call waits until all of this lets it through:
//
//   - Its limit: calls at a time, and calls and tokens within any minute. Stages
//     that name the same limit block share it; a stage without one shares, with
//     all others like it, a limit per endpoint. Waiting calls of one stage are
//     admitted in order, and the stages of a limit in turns.
//   - Its endpoint: one that has asked for fewer calls is left alone for as long
//     as it said, or for a while that grows with every further refusal. One that
//     has failed several times in a row gets a few calls a second, until it
//     answers or, after five seconds, counts as down. One that is down has an open
//     circuit: calls fail at once, and from time to time one is let through to see
//     whether it is back. It makes no difference whether it was ever there: it may
//     be starting.
//   - The budget: what was spent, and what the calls under way can cost at most,
//     leaves room for it. Where it does not, calls wait for those under way to cost
//     less; when none is under way any more, all stages stop. So a run keeps its
//     budget where every call says what it takes at most (sdk.Call.Most). Of one that
//     does not, its rough estimate is set aside, and the run may go over its budget
//     by what the calls under way cost beyond that: the log says so, once for each
//     stage. A call counts as much as was set aside for it where nobody knows what it
//     took: its caller gave up, its reply was lost, its service never reports that, or
//     reports more than any call can take.
//
// Where nothing takes over what a stage fails on (Stage.Sole), an open circuit is
// no answer: its calls wait up to two minutes for a service that is down, which is
// tried a last time then. If it stays away, denies the first calls of the stage or later
// many in a row, or refuses all calls as too many for five minutes, the stage is stopped,
// and the calls of others are still admitted. An unknown host is down as well: the name of a container is
// known only when that has started.
//
// Nobody waits without a word: Options.Waiting hears of a service that has kept calls
// waiting for five seconds, and then every thirty, with its reason.
//
// Tokens count towards a limit from the moment a call is admitted, as estimated
// roughly, and from its end on as what it really took.
//
// The package knows neither HTTP nor models. Whether a failed call is worth
// another try is decided elsewhere; a call that was let through may still fail.
package calls
