// Package catalog lists the stages that a pipeline file can use: the built-in stages, and the
// stages of third-party plugins. A plugin under development (--plugins, RACFLOW_PLUGINS, racflow
// plugin install --dev) takes precedence over a plugin that the file requires and its lock names.
// The catalog describes locked plugins without starting them. When a file names a stage of a plugin
// under development, the catalog starts the plugin to ask for its stages. If a plugin may not be
// used, its error gives advice. The loader reports the error at the use of the plugin.
//
// The package starts no stage and checks no file: packages host and pipeline do.
package catalog
