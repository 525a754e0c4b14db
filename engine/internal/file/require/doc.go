// Package require reads the third-party plugins that a pipeline file requires: the entries of its block
// required_plugins. The command that installs plugins reads only these entries; the loader reads the
// whole file.
//
// It searches for no plugin: package catalog finds them, and package registry installs them.
package require
