// Package plugin reads the third-party plugins that a pipeline file requires: the entries of its block
// required_plugins. The verbs that install read them alone, the loader with the rest of the file.
//
// lock.go reads and writes the file that names each program by its hash. Package registry finds and stores
// the programs. This package looks for nothing and starts nothing.
package plugin
