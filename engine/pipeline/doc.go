// Package pipeline reads a pipeline file: HCL to a checked definition that
// keeps the place of everything in the file.
//
// Load finds all faults of a file at once, each with file, line, column and
// advice, and starts nothing: no process, no model, no network. What plugins
// offer it asks a Catalog. What it returns can be run as it is: every name is
// known, every type fits, every default is filled in, every rule compiles.
//
// The package knows the format (blocks, variables, locals, functions, config)
// and which stage waits for which (Needs). It does not read data: whether a
// knowledge is empty or a table lacks a column is found by package source when
// the data is read.
package pipeline
