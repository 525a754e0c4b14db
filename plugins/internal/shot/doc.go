// Package shot holds what the prompt stages share: labelled examples, the
// templates that are filled with them, the labels that are allowed as answers,
// and how many examples fit a budget of tokens.
//
// It writes no prompts itself.
package shot
