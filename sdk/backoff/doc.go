// Package backoff says how long to wait before something that failed is tried
// again: twice as long after each failure, with jitter, so that callers that
// failed together do not return together. It does not count attempts and does
// not decide what is worth another one.
package backoff
