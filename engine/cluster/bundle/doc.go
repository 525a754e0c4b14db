// Package bundle holds what a worker needs to open the pipeline file of a run: the file with all that
// it reads, and the names of what is too large or too secret to travel.
//
// A worker keeps the paths of the caller's machine, since results may depend on them, and is told where
// each lies on its own (engine.Options.Away). Plugins are found by the lock file, models by the
// digests of their files, and secrets in the worker's own environment; what a worker lacks of
// these is a list of sentences that say what to do (LacksError).
//
// The environment never travels: neither what secret() reads, nor what env() does. Of variables,
// those travel that hold no secret; files that hold one, such as private keys, stay. The sources of
// knowledge and the input stay with the caller, too.
package bundle
