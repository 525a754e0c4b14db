// Package store keeps installed programs of plugins, each in a private folder that is named by
// its hash, and beside it what the program says of itself, so that nobody has to start it to ask.
//
// Whatever is taken from the store is hashed again before it is started: what lies there is the
// user's own, and any program of that user could have changed it. Nothing is downloaded here, and
// nothing is started.
package store
