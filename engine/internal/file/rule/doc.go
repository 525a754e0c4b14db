// Package rule compiles and evaluates the rules of a pipeline file: the expr
// expressions of when, keep, accept, flag, fallback, filter and whole.
//
// A store evaluates a filter, not this package. The package splits it into comparisons of
// an entry's fields with values, and computes only the values: once per item where they
// depend on the item (Filter.Bind).
//
// A rule is a text in an HCL file, so its errors point into that file, inside the
// string or heredoc (Source). A rule may use a fixed set of typed names (see Names). Before
// anything starts, it is checked against these and against what stands above it (Scope).
//
// The person who runs the pipeline writes the rules, but not the data that they work
// on, and one careless rule must not stall a run of a million items. So the language
// is cut down to what a predicate needs, and every evaluation is bounded: in source
// length, nodes, memory, regular expressions and time. The bounds are in limits.go.
//
// The package does not know pipelines, stages or plugins, and reads no HCL beyond the
// one expression that a rule is written in.
package rule
