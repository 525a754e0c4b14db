// Package lock reads and writes the file that says which program stands for each plugin that a
// pipeline file requires: its version, who signed it, and its hash on every platform. It lies
// beside the pipeline file and is made to be committed, so that everybody who has the file runs
// the same programs.
//
// Only the verb that installs writes it. It is sorted and depends on nothing but what it says, so
// that writing the same again changes no byte. Where programs come from and where they are kept
// is the concern of other packages.
package lock
