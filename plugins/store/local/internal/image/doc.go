// Package image is the container of a segment: a header, a table and sections of bytes,
// in a file that is mapped or in memory, written once and checked by checksums. It knows
// the names of the sections and not what stands in them. format.md describes the bytes.
package image
