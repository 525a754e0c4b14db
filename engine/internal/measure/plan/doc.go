// Package plan finds out what a run would build, call and cost, before it runs. It asks no
// service. It compares knowledge with its sources, uses what earlier calls have shown of language
// models, and makes a dry run of some items, in which a stand-in replaces each voter that calls a service.
//
// The only thing it changes is the knowledge that the dry run searches: it brings that up
// to date if this calls no service. estimate.go counts tokens, package report
// shows plans.
package plan
