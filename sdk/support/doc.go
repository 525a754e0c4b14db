// Package support holds code that the engine and the built-in stages share, and that no plugin needs:
// backoff delays, file locks, words of a language, fusion of rankings, answers in the texts of
// models, sections of Markdown, samples by label, and memory that other processes may not read.
//
// The package is not stable: any version of racflow may change it. A plugin that needs some of it
// should copy it.
package support
