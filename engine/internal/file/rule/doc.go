// Package rule compiles and evaluates the rules of a pipeline file: the expr
// expressions of when, keep, accept, flag, fallback, filter and whole.
//
// A store evaluates a filter, not this package. The package splits a filter into comparisons of an
// entry's fields with values, and computes only the values. If the values depend on the item, it
// computes them once per item (Filter.Bind).
//
// A rule is a text in an HCL file, so its errors point into that file, inside the string or heredoc
// (Source). A rule may use a fixed set of typed names (see Names). Before anything starts, a rule
// is checked against these names and against the blocks above it (Scope).
//
// The person who runs the pipeline writes the rules, but not the data that they work on. One
// careless rule must not block a run of a million items. So the language is reduced to what a
// predicate needs, and every evaluation is bounded: in source length, nodes, memory, regular
// expressions and time. The bounds are in limits.go.
//
// The package does not know pipelines, stages or plugins. It reads no HCL except the one expression
// that contains a rule.
package rule
