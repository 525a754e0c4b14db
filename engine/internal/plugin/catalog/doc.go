// Package catalog knows the stages that a pipeline file can use: the built-in ones, and those of
// third parties' plugins. A plugin is taken from where it is being developed (--plugins,
// RACFLOW_PLUGINS, racflow plugin install --dev), else from what the file requires and its lock
// names. What is locked describes itself without being started; what is being developed is started
// to be asked when a file names one of its stages. Why a plugin may not be used is an error with
// advice, which the loader reports where the file uses it.
//
// It starts no stage and checks no file: packages host and pipeline do.
package catalog
