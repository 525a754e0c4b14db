package chat

import (
	_ "embed"
)

//go:embed default.tmpl
var defaultTemplate string

// Data is what a template of the system message can use.
type Data struct {
	Labels    []string // the allowed ones, best first; empty where the knowledge has none
	Ranked    bool     // the first of them are those of the item's neighbours
	All       []string // those of the knowledge, sorted, where all of them are allowed; else empty
	Near      []string // those of the item's neighbours, nearest first
	None      string   // the answer that no label fits; empty: not allowed
	List      bool     // the answer is a list of labels, empty where none fits
	Reasoning bool     // the answer is to give reasons
	Shots     int      // how many turns stand between the system message and the item
}

// samples are the data that templates are tried with.
func samples() []any {
	return []any{Data{Labels: []string{"label"}, Ranked: true, All: []string{"label"}, Near: []string{"label"}, None: "none", List: true, Reasoning: true, Shots: 1}, Data{}}
}
