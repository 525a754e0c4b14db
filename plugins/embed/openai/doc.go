// Package openai is an embedder: a model behind an OpenAI-compatible endpoint
// for embeddings (OpenAI, vLLM, TEI, llama.cpp, Ollama, gateways).
//
// Texts are packed into requests within OpenAI's limits: at most 2,048 texts
// and 300,000 tokens. A request that the server refuses is cut in halves until
// only the texts are left that it refuses alone; those rows fail, and where
// there are none, later requests are that much smaller. No empty text is sent:
// one with nothing in it but spaces has the zero vector.
//
// Vectors come as base64, or as numbers where the server knows no base64. A
// reply is checked (one vector for each text, in the order of their index, of
// one length, finite, not zero) and every vector is brought to norm 1. Each is
// kept through sdk.Host under the endpoint, model, parameters and text.
//
// The length of the vectors has to be known before the first batch, when there
// is no Host yet: without an argument for it one text is embedded while the
// stage opens, past the limits and the budget of the run. What came out is
// noted in the state folder, so that the next run asks nobody.
//
// Which prefix a model wants before queries and passages stands in its
// documentation: "query: " and "passage: " for E5, for example.
package openai
