// Package rule compiles and evaluates the rules of a pipeline file: the expr
// expressions of when, keep, accept, flag, fallback, filter and whole.
//
// A filter is evaluated by a store, not here: it is split into comparisons of
// an entry's fields and the values that they are compared with, and only those
// are computed, per item where they depend on it (Filter.Bind).
//
// A rule is a text in an HCL file, so its errors point into that file, inside the
// string or heredoc (Source). It sees a fixed set of names
// (see Names), each with a type, and is checked against them and against what
// stands above it (Scope) before anything starts.
//
// A rule is written by the person who runs the pipeline, but the data it works
// on is not, and one careless rule must not stall a run of a million items. So
// the language is cut down to what a predicate needs, and every evaluation is
// bounded: in source length, nodes, memory, regular expressions and time. The
// bounds are in limits.go.
//
// The package does not know pipelines, stages or plugins, and does not read
// HCL beyond the one expression that a rule is written in.
package rule
