// Package plan finds out what a run would build, call and cost, before it does. It
// asks no service: what is known of language models is what earlier calls have shown, knowledge is compared with its sources, and some items make a dry
// run, in which a stand-in takes the place of each voter that calls a service.
//
// It changes nothing but the knowledge that the dry run searches, which it brings up
// to date where that calls no service. estimate.go counts tokens, package report
// shows plans.
package plan
