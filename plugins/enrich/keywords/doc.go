// Package keywords is an enricher that has a language model name what each passage
// is about: n words or short phrases that people who want it may search for, also
// ones that the passage does not use. Package docexpand does the work.
//
// The messages are written with system.tmpl and prompt.tmpl, Go text/templates with the
// fields of docexpand.Data; files named in the config replace them.
package keywords
