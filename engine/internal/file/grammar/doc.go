// Package grammar describes the blocks of a pipeline file and their arguments: names, types,
// ranges, defaults, and a sentence on each. The loader accepts only what the package describes.
// Editors use it to complete and explain.
//
// It does not read files or describe the arguments of plugins, which describe
// themselves (sdk.Argument).
package grammar
