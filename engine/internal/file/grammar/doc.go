// Package grammar describes the blocks of a pipeline file and their arguments: names, types,
// ranges, defaults, and a sentence on each. The loader accepts what the descriptions name and
// nothing else, and editors complete and explain by them.
//
// It does not read files, and it does not know the arguments of plugins, which describe
// themselves (sdk.Argument).
package grammar
