// Package values says which arguments of a pipeline can be varied at no cost and with
// which values, how an item is scored, and what came of trying them.
//
// Where nobody names any, those arguments of searches, rerankers and statistical voters are
// tried that the file takes from a variable. While they are, voters that ask services, or
// get the doubtful items alone, stay out of it, unless there is no other: only values that
// were asked for by name may cost calls.
//
// It runs no pipeline: package engine does, and package crossval chooses.
package values
