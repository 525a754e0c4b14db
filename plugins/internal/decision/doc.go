// Package decision asks decision models. These services take a state and typed questions about it, and return
// probabilities instead of a text.
//
// Two request forms are in use: POST /systemone and POST /decisions. TypeSafe's Jev defined the first; OpenRouter,
// Ollama, llama.cpp, vLLM, LiteLLM, Laya and Cloudflare support it as well. OpenAI defined the second; vLLM and
// Fireworks support it as well. A Question can be written in either form. The package handles the differences between
// servers: an envelope around the reply, probabilities rounded to 0, and model names that an alias redirects. See the
// sources of typesafe-sdk 0.7.5 and openai 3.57.0 for Python.
//
// The package ignores the confidence in a reply, since servers compute it in six ways, from the winner's share to an
// entropy. The distribution over the options means the same on all servers.
//
// The cache key of a reply is its request and the name of the model that answered. Retries, limits and budgets are
// the engine's task.
package decision
