// Package plugin reads the third-party plugins that a pipeline file requires: the entries of its block
// required_plugins. To install plugins, a verb reads only these entries; the loader reads the whole file.
//
// lock.go reads and writes the file that names each program by its hash. Package registry finds and stores
// the programs. transfer.go has what downloads of plugins and of models share. This package looks for nothing and starts
// nothing.
package plugin
