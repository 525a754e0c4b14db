// Package pipeline reads a pipeline file: HCL to a checked definition that
// keeps the place of everything in the file.
//
// Load finds all faults of a file at once, each with file, line, column and
// advice, and starts nothing: no process, no model, no network. What plugins
// offer it asks a Catalog. What it returns can be run as it is: every name is
// known, every type fits, every default is filled in, every rule compiles.
//
// A file may come from anywhere, so what it can take is bounded: the size and
// nesting of its source (syntax.go), what its expressions make on the way
// (limits.go) and the number of its diagnostics. Every value that is evaluated
// is metered before anything is made of it (meter.go), and functions that make
// much of little say beforehand what a call comes to (bounded.go). Load ends
// soon after its context does.
//
// The package knows the format (blocks, variables, locals, functions, config), which
// Blocks describes for people and editors and the loader reads by,
// and which stage waits for which (Needs). It does not read data: whether a
// knowledge is empty or a table lacks a column is found by package source when
// the data is read.
package pipeline
