// Package require reads the third-party plugins that a pipeline file requires: the entries of its block
// required_plugins. To install plugins, a verb reads only these entries; the loader reads the whole file.
//
// It looks for no plugin: package catalog finds them, and registry installs them.
package require
