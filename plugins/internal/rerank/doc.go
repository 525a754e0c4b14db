// Package rerank is the built-in rerankers: cross-encoders, on this machine or behind a service, and a correction of the
// order without a model.
package rerank
