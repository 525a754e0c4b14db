// Package fewshot holds what the stages that write prompts share: labelled examples, templates, the list of allowed
// labels, token estimates, and the choice of how many examples fit into a token budget.
//
// It writes no prompts itself.
package fewshot
