// Package embed holds the built-in embedders: a model on this machine's processor, hashed words, and a model behind
// an OpenAI-compatible endpoint.
package embed
