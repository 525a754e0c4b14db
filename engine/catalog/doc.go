// Package catalog knows the stages that a pipeline file can use: the built-in ones, and
// those of third-party plugins, which it looks for in folders and asks to describe
// themselves when a file names one.
//
// It starts no stage and checks no file: packages host and pipeline do.
package catalog
