// Package openai is a voter: a language model behind an OpenAI-compatible
// server (OpenAI, vLLM, llama.cpp, Ollama and others), asked n times for the
// label that completes the prompt.
//
// It asks for n choices in one request, counts what came back, as some servers
// ignore n, and asks again until it has n samples; a server that refuses n is
// asked for one choice at a time. An answer is the text up to the first line
// break; a refusal or an empty text is a sample without answers (the model
// abstains). Whether an answer is a label is for accept rules to say.
//
// An item fails alone. Statuses 408, 409, 429 and 5xx and lost connections
// count as transient, with the time that the server asks to wait; everything
// else as the input's fault. Retries, their limit and the cache of answers are
// the engine's. The key goes into the Authorization header and nowhere else.
//
// One endpoint, no streaming, no structured output, no cache hints.
package openai
