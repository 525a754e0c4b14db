// Package openaitest is an OpenAI-compatible server for tests: chat and text
// completions and embeddings on loopback. It answers by a function of the test,
// as slowly and as wrongly as the test says, and keeps what it was asked.
//
// It refuses what OpenAI's own service refuses: JSON schemas that are not strict
// or too large, fields that reasoning models do not take, empty inputs. It counts
// a token for every four characters, and reports those of a prompt's beginning
// as cached that an earlier prompt began with, too.
//
// It does not stream, and its answers do not depend on temperature or seed.
package openaitest
