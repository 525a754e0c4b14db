// Package create writes the project of a new plugin: a small stage that works, of one of the
// eight kinds, in Go or Python, with a test, data, a pipeline file that uses it, and a workflow
// that releases it. What it writes is in the folder templates.
//
// It builds and starts nothing, and asks no network: package build does the one, the person the other.
package create
