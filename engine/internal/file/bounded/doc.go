// Package bounded parses and evaluates HCL from anyone in bounded time and memory.
//
// The size and nesting of a source are checked before the parser, which is recursive, sees it
// (Parse). An Evaluator has a budget of bytes for all values of a file: every value is weighed
// before anything is made of it (meter.go), and functions that may make much of little say
// beforehand what a call costs (functions.go). What exceeds a bound ends the work with a
// diagnostic that says where and what to do, and so does the end of the Evaluator's context.
//
// The package knows nothing of pipelines, variables or secrets.
package bounded
