// Package modelserver is an OpenAI-compatible server for tests: chat and text
// completions and embeddings on loopback. It answers by a function of the test, with the
// latency and the faults that the test injects, and records its requests.
//
// What services of language models do differently has names (Behaviours), so that a
// test of a stage can be run against each of them:
//
//	server := Serve(t, Named("refuses-temperature", "thinks-in-tags"))
//
// README.md lists them, with what racflow does about each. Authors of plugins in other
// languages start the server with examples/modelserver.
//
// Whatever its behaviours, it refuses what OpenAI's own service refuses: JSON schemas that
// are not strict or too large, empty inputs. It counts a token for every four characters,
// and reports the tokens of a common beginning with an earlier prompt as cached. No
// behaviour depends on a model's name.
//
// It speaks Anthropic's Messages API as well, at /messages, and its batches, with the same
// options, but streams no messages, and refuses what that refuses: fields of OpenAI's, stop texts of white space
// alone, thinking beside a temperature or a tool that has to be called.
//
// It decides, too, at /systemone and /decisions: it answers questions by probabilities.
//
// Probes, the requests by which racflow finds out what a model takes, are answered but
// not counted, unless a test asks for it.
//
// Its answers do not depend on temperature or seed.
package modelserver
