// Package openai is an embedder: a model behind an OpenAI-compatible endpoint for
// embeddings (OpenAI, vLLM, TEI, llama.cpp, Ollama, gateways).
//
// Texts are packed into requests within OpenAI's limits: at most 2,048 texts and
// 300,000 tokens. A request that the server refuses is divided in halves until the texts
// are found that it refuses alone; those rows fail. Where there are none, the request
// was too large, and later ones are smaller. A text of nothing but spaces is not sent
// and has the zero vector.
//
// Vectors come as base64, or as numbers where the server knows no base64. A reply is
// checked (one vector for each text, in the order of their index, of one length, finite,
// not zero), and every vector is brought to norm 1. Each is cached under its text and
// what a request says besides texts.
//
// The length of the vectors has to be known before the first batch: without an argument
// for it one text is embedded while the stage opens, again where
// the service is not there yet. The state folder remembers the length, so that the next run
// asks nobody.
//
// A model's documentation says which prefix it wants before queries and passages:
// "query: " and "passage: " for E5, for example.
package openai
