// Package trust lists what a pipeline file wants beyond its folder, and stores what people have granted.
//
// A file is code that a person may have got from a stranger: it names hosts, secrets of the environment, files and
// programs. Wants lists these; loading a file uses none of them. Grants stores which wants a person has granted to the
// files of a folder, in the user's configuration, not in the folder. The program decides who asks, and what replaces an
// answer: engine.Options.Trust.
package trust
