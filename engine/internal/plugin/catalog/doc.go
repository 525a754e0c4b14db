// Package catalog lists the stages that a pipeline file can use: built-in ones, and those of
// third-party plugins. A plugin under development (--plugins, RACFLOW_PLUGINS, racflow plugin
// install --dev) takes precedence over one that the file requires and its lock names. The catalog
// describes locked plugins without starting them. It starts a plugin under development, to ask it,
// when a file names one of the plugin's stages. If a plugin may not be used, its error gives
// advice, and the loader reports the error where the file uses the plugin.
//
// The package starts no stage and checks no file: packages host and pipeline do.
package catalog
