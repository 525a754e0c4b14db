// Package program finds the programs of third parties' plugins, and identifies a program by its
// content. It starts none.
package program
