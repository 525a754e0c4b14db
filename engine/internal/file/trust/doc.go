// Package trust says what a pipeline file wants beyond its folder, and keeps what people have granted.
//
// A file is code that somebody may have got from a stranger: it names hosts, secrets of the environment, files and
// programs. Wants lists those; none of it has happened when a file is loaded. Grants keeps in the user's configuration,
// not in the folder, which wants a person has granted to the files of a folder. Who asks, and what stands in for an
// answer, is decided by the program: engine.Options.Trust.
package trust
