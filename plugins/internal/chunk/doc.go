// Package chunk holds the built-in chunkers. All of them cut at natural boundaries of a text and keep to a size in
// tokens.
package chunk
