// Package modelserver is an OpenAI-compatible server for tests: chat and text
// completions and embeddings on loopback. It answers by a function of the test, with the
// latency and the faults that the test injects, and records its requests.
//
// It refuses what OpenAI's own service refuses: JSON schemas that are not strict or too
// large, fields that reasoning models do not take, empty inputs. It counts a token for
// every four characters, and reports the tokens of a common beginning with an earlier
// prompt as cached.
//
// Probes, the requests by which racflow finds out what a model takes, are answered but
// not counted, unless a test asks for it.
//
// It does not stream, and its answers do not depend on temperature or seed.
package modelserver
