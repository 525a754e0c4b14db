// Package bundle holds what a worker needs to open the pipeline file of a run: the file with all that
// it reads, and the names of what is too large or too secret to travel.
//
// Files travel with their paths relative to each other. Plugins are found by the lock file, models
// by the digests of their files, and secrets in the worker's own environment; what a worker lacks
// of these is a list of sentences that say what to do (LacksError).
//
// The environment never travels: neither what secret() reads, nor what env() does. Of variables,
// those travel that are not secret. The sources of knowledge and the input stay with the caller, too.
package bundle
