// Package enrich is the built-in enrichers: what they add to a passage is embedded and searched with it, and removed again
// before a model or a person sees the text.
package enrich
