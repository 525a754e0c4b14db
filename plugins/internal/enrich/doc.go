// Package enrich holds the built-in enrichers. The text that they add to a passage is embedded and searched with the
// passage. It is removed again before a model or a person sees the passage.
package enrich
