// Package fewshot holds what stages that write prompts share: labelled examples, templates,
// the labels that are allowed as answers, estimates of tokens, and how many examples
// are within a budget of them.
//
// It writes no prompts itself.
package fewshot
