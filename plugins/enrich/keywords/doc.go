// Package keywords is an enricher that has a language model name what each passage
// is about: n words or short phrases for which people may search who want it, also
// such as the passage does not use. Package docexpand says how.
//
// What the model is told stands in system.tmpl and prompt.tmpl. Files of one's own
// may replace them, Go text/templates with the fields of docexpand.Data.
package keywords
