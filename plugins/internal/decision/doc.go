// Package decision asks decision models: services that take a state and typed questions about it, and
// return probabilities in place of a text.
//
// Two forms of requests are in use: POST /systemone, of TypeSafe's Jev, which OpenRouter, Ollama, llama.cpp,
// vLLM, LiteLLM, Laya and Cloudflare speak as well, and POST /decisions of OpenAI, which vLLM and Fireworks
// speak. A Question is written in either one. What servers do differently is answered here: an envelope
// around the reply, probabilities that are rounded to 0, names of models that an alias moves away from. See
// the sources of typesafe-sdk 0.7.5 and openai 3.57.0 for Python.
//
// The confidence in a reply is not read: servers compute it in six ways, from the share of the winner to
// an entropy. The distribution over the options means the same in all of them.
//
// Replies are cached by their request, with the name of the model that gave them. Retries, limits and
// budgets are the engine's.
package decision
