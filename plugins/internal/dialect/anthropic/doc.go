// Package anthropic is the dialect of Anthropic's Messages API
// (https://docs.anthropic.com/en/api/messages), version 2023-06-01.
//
// What differs from OpenAI's form: system messages stand in a field of their own, wherever
// they stood in the chat. Messages of one role that follow each other are one message, and
// empty ones, which the API refuses, are left out. The limit of an answer is required:
// where there is none, 4,096 tokens are asked for, or 16,384 with thoughts, which every model of theirs allows. Texts to stop at
// that are nothing but white space are refused, so they are not sent. There are no n
// choices, seeds and log probabilities: a stage that counts what came back asks n times.
//
// A schema goes as output_config.format, or as a tool that the model has to call; a model that
// thinks cannot be made to call one, so it is only offered. There is no plain JSON mode: the schema
// stands in the prompt then.
//
// An effort that is a word goes as output_config.effort, and the model thinks as much as it
// finds right (adaptive). One that is a number is a budget of thinking tokens, which is added to a limit
// that leaves no room for it; "none" switches thinking off. A model that
// thinks takes no temperature and no top_p.
//
// The usage counts cached tokens apart: sdk.Usage.InputTokens has them all.
//
// The types of this package are those parts of the API that racflow uses. Anthropic's own Go library has
// all of it, and would add a quarter to the program's size; .ci/anthropic holds this
// package and the scripted server of the tests against it.
package anthropic
