// Package build makes a program of an author's project, with the go command.
//
// It starts no plugin and checks none: packages host and verify do. It downloads nothing itself;
// the go command does, from where it is configured to.
package build
