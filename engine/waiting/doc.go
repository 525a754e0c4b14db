// Package waiting reports what the calls of stages wait for, whoever makes them wait: the
// governor (a service that asks for fewer calls or is down, a limit), a retry's pause, a
// stage that is starting or gives no answer.
//
// Those who make calls wait say so when they are asked (Reporter.Watch) or as they begin
// to (Reporter.Hold). A Reporter asks four times a second, and reports a stage once it has
// answered nothing for as long as the wait says: five seconds where there is a reason,
// thirty where a call is merely under way. Then every thirty seconds, in one line for each
// stage, with the reason that comes first and the number of calls that wait for any.
//
// The package changes nothing about how long anybody waits. Results that come later
// (package pending) take minutes or hours, and have reports of their own.
package waiting
