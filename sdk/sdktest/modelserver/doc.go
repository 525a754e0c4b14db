// Package modelserver is an OpenAI-compatible server for tests: chat and text completions and
// embeddings on loopback. A function of the test answers, and the test injects latency and faults.
// The server records its requests.
//
// Each way in which services of language models differ has a name (Behaviours), so that a test of a
// stage can run against each of them:
//
//	server := Serve(t, Named("refuses-temperature", "thinks-in-tags"))
//
// README.md lists the behaviours, with racflow's response to each. Authors of plugins in other
// languages start the server with examples/modelserver.
//
// Whatever its behaviours, the server refuses what OpenAI's own service refuses: JSON schemas that
// are not strict or too large, empty inputs. It counts a token for every four characters. If a prompt
// begins like an earlier one, the tokens of the common beginning are reported as cached. No behaviour
// depends on a model's name.
//
// The server also offers Anthropic's Messages API, at /messages, and its batches, with the same
// options. It streams no messages. It refuses what Anthropic refuses: OpenAI's fields, stop texts of
// white space alone, thinking together with a temperature or a forced tool.
//
// The server also answers questions with probabilities, at /systemone and /decisions.
//
// racflow sends probes to find out what a model accepts. The server answers probes without counting
// them, unless a test asks for it.
//
// Answers do not depend on temperature or seed.
package modelserver
