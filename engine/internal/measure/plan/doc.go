// Package plan forecasts what a run would build, call and cost. It asks no service. It compares
// knowledge with its sources and reads the profiles of language models from earlier calls. It also
// makes a dry run of some items, in which a stand-in replaces each voter that calls a service.
//
// The package changes only the knowledge that the dry run searches: it updates the knowledge if the
// update calls no service. estimate.go counts tokens; package report shows plans.
package plan
