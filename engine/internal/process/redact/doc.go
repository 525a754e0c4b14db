// Package redact replaces secrets in texts. One Secrets holds every secret of a command: the secrets
// that the file reads, and those that stages get. So no secret appears in any text, whichever stage
// writes the text.
//
// It finds a secret as it is, and in the forms that logs, JSON and addresses give it. It finds a
// secret of fewer than Shortest bytes only as a whole word, since many texts contain such a short
// text by chance. It cannot find a secret that was encoded otherwise or cut in two: it guards against
// mistakes, not against people who mean to pass a secret on.
package redact
