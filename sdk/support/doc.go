// Package support is what the engine and the built-in stages have in common and no plugin has to have: how long to wait before
// another attempt, locks of files, words of a language, fusion of rankings, answers in the texts of models, sections of
// Markdown, samples by label, and a process whose memory others may not read.
//
// It promises nothing: any version of racflow may change it. A plugin that needs some of it had better copy that.
package support
