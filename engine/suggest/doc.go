// Package suggest finds what a person may want to write on the command line about a
// pipeline file: its variables with the values that they may have, its pipelines and its
// knowledge.
//
// It reads syntax alone: nothing is evaluated and no program is started, so a shell can
// ask it at every key. A file that is only half right gives what can be read of it. It
// checks nothing: package pipeline does.
package suggest
