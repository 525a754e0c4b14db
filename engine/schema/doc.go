// Package schema explains stages by their descriptions, for people, programs and
// the reference: a stage's arguments with types, bounds and defaults, what it reads,
// and an example of its block. Built-in and foreign stages are explained alike.
//
// The package checks nothing (package sdk does, by the same description) and knows
// neither files nor processes.
package schema
