// Package jsonrows reads rows that are written as JSON: one object a line (JSONL), or the
// elements of an array of any length, which stands alone or in an object. An element is
// read when it is its turn, so that memory is bounded.
//
// It keeps the order of members, which encoding/json does not, and leaves values as they
// are written. It does not know what members mean.
package jsonrows
