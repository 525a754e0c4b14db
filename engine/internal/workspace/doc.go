// Package workspace opens pipelines and processes items with them, for the four faces of racflow: the
// command, the server, the Python package, which asks a server, and Go programs, which see it as package
// engine. What one of them can do, all can.
//
// A Workspace holds what is needed to open files: the state folder, the plugins, the processes, and what
// calls of services share. A Pipeline is a checked file with one of its pipelines; its stages start when
// they are first needed. Tools that work on files without running them, such as editors, use the
// workspace's Read and its Catalog.
//
// The package does not write to standard output or standard error, or read standard input: Options.Log
// and Options.Events get reports, and mistakes in a file are a DiagnosticsError. Texts name options as
// Options.NAME. The command adds flags, tables and exit codes.
package workspace
