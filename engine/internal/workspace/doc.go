// Package workspace opens pipelines and processes items with them. It serves the four interfaces of
// racflow: the command, the server, the Python package (through the server), and Go programs (as package
// engine). All four can do the same.
//
// A Workspace holds what is needed to open files: the state folder, the plugins, the processes, and what
// calls to services share. A Pipeline is a checked file with one of its pipelines; its stages start when
// they are first needed. Tools that work on files without running them, such as editors, use the
// workspace's Read and Catalog.
//
// The package does not write to standard output or standard error, or read standard input. Options.Log
// and Options.Events receive reports. Mistakes in a file are a DiagnosticsError. Texts name options as
// Options.NAME. The command adds flags, tables and exit codes.
package workspace
