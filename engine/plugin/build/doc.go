// Package build makes a program of an author's project: it compiles one in Go with the go command,
// and gives one in Python a virtual environment with the packages that it needs. The package
// racflow-plugin among them comes out of racflow itself. But for the go command's own caches, nothing
// is written outside of the project.
//
// It starts no plugin and checks none: packages host and verify do. It downloads nothing itself;
// go and pip do, from where they are configured to.
package build
