// Package bounded parses and evaluates HCL from anyone in bounded time and memory.
//
// Parse checks the size and nesting of a source before the parser, which is recursive, sees it. An
// Evaluator has a budget of bytes for all values of a file, and weighs every value before it is
// used (meter.go). Some functions return much more than they get, or take more than linear time.
// The Evaluator estimates the cost of their calls beforehand (evaluate.go). Work that exceeds a
// bound, or outlasts the Evaluator's context, ends with a diagnostic that says where and what to
// do. Only the place of a read that hangs is unknown.
//
// The package does not know pipelines, variables or secrets.
package bounded
