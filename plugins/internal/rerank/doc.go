// Package rerank holds the built-in rerankers: cross-encoders, on this machine or behind a service, and a rule that
// corrects the order without a model.
package rerank
