// Package redact replaces secrets in texts. All that a command knows of secrets is
// in one Secrets: those that the file reads and those that stages are given, so that
// none of them shows, whichever stage says it.
//
// It finds a secret as it is and in the forms that logs, JSON and addresses give it; one of fewer than
// Shortest bytes only as a whole word, since it stands in many others by chance.
// It cannot find one that was encoded otherwise, or cut in two: it is there for
// mistakes, and stops nobody who means to pass a secret on.
package redact
