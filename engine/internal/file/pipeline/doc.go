// Package pipeline loads a pipeline file. It checks the HCL and turns it into a definition that
// knows the place of everything in the file.
//
// Load reports all errors of a file together, each with file, line, column and advice. It starts
// nothing: no process, no model, no network. It asks a Catalog what plugins offer. Its result can
// run as it is: every name is known, every type fits, every default is set, and every rule
// compiles.
//
// A mistake is reported at its place in the file, whichever check finds it:
//
//	HCL source -> expression with range -> sdk.Argument checks (tags) -> diagnostic at the element
//	                                \-> stage.Validate, Open: sdk.ArgumentError{Argument, Path}
//	                                      -> over the wire -> Config.Diagnostic -> the same element
//	                                \-> Attach: what does not fit the collection takes the same way
//	rule text in a string or heredoc -> offset in the unescaped text -> package rule -> place in the file
//
// Loading ends soon after its context does and is bounded in time and memory (package bounded).
// Package grammar defines the blocks and arguments.
//
// The package handles variables, locals, functions and config blocks, and decides for which other
// stages each stage waits (Pipeline.Needs). It does not read data: package source reports an empty
// knowledge or a missing column when it reads the rows.
package pipeline
