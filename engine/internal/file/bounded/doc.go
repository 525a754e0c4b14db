// Package bounded parses and evaluates HCL from anyone in bounded time and memory.
//
// Parse checks the size and nesting of a source before the parser, which is recursive, sees it.
// An Evaluator has a budget of bytes for all values of a file. It weighs every value before it
// is used (meter.go). It estimates beforehand what a call costs of a function that may make much
// of little, or that takes more than linear time (evaluate.go). Work that exceeds a bound ends with
// a diagnostic that says where and what to do; so does work that outlasts the Evaluator's context,
// except a read that hangs, whose place is not known.
//
// The package knows nothing of pipelines, variables or secrets.
package bounded
