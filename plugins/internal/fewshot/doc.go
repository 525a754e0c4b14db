// Package fewshot holds what stages share that write prompts: labelled examples,
// templates that are filled, the labels that are allowed as answers,
// and how many examples fit a budget of tokens.
//
// It writes no prompts itself.
package fewshot
