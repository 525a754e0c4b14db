// Package program knows the programs of third parties' plugins as they lie on disk: where
// they are, what they are by their content, and whether they are safe to start.
//
// A program is a single file racflow-plugin-NAME, or a folder of that name that holds a
// program of that name and everything that belongs to it. Its hash is "sha256:HEX" of the
// file or "tree:HEX" of all files of the folder, so that a changed module is seen as well as
// a changed program.
//
// The package starts nothing, and does not know which plugins a file requires or how they
// came to be installed: package plugin and what is below it do.
package program
