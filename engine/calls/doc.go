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
//     answers or counts as down. One that is down has an open circuit: calls fail
//     at once, and from time to time one is let through to see whether it is back.
//   - The budget: what was spent, and what the calls under way may cost by their
//     own estimates, leaves room for it. Where it does not, calls wait for those
//     under way to cost less than they were estimated at; when none is under way
//     any more, the run is stopped. So a run goes over its budget by no more than
//     the calls under way at its end cost beyond their estimates. A call whose
//     caller gave up, or whose service never tells what calls took, counts as
//     estimated.
//
// Where nothing takes over what a stage fails on (Stage.Sole), an open circuit is
// no answer: its calls wait up to two minutes for a service that is down. If that
// stays away for longer, denies the first calls of the stage or later many in a row,
// or refuses all calls as too many for five minutes, the run is stopped and can be
// gone on with.
//
// Tokens count towards a limit from the moment a call is admitted, as estimated,
// and from its end on as what it really took.
//
// The package knows neither HTTP nor models. Whether a failed call is worth
// another try is decided elsewhere; a call that was let through may still fail.
package calls
