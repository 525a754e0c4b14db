// Package chunk is the built-in chunkers. All of them cut where a text divides by itself, and keep to a size in tokens.
package chunk
