// Package replay keeps the requests that stages failed on, so that the author of a
// plugin can send them again: `racflow plugin verify --replay FILE`.
//
// A file has one request, cut down to the row to blame where that was found, with the
// stage and the config that it went to, and what came of it. Secrets are not in it:
// whoever writes one has masked them, so that it can be sent to somebody. The texts of
// rows are.
//
// A run has a few files at most: what fails in one way fails often. The package does
// not start anything.
package replay
