// Package plugin knows what a pipeline file requires of third parties: the entries of its block
// required_plugins. They are read without the rest of the file, by the verbs that install, and
// with it, by the loader.
//
// lock.go reads and writes the file that names each program by its hash; package registry finds and keeps the programs. This
// package looks for nothing and starts nothing.
package plugin
