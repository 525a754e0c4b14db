// Package program describes third-party plugin programs on disk: where they are, which hash
// identifies their content, and whether they are safe to start.
//
// A program is a single file racflow-plugin-NAME, or a folder of that name that contains a program
// of that name and everything that belongs to it. Its hash is "sha256:HEX" of the file, or
// "tree:HEX" of all files of the folder, so that a changed module is detected like a changed
// program.
//
// The package starts nothing. Package plugin and the packages below it know which plugins a file
// requires and how they were installed.
package program
