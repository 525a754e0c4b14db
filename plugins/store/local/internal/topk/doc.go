// Package topk keeps the best rows of a search, ties by id, and divides its work among
// the cores.
package topk
