// Package install chooses releases of the plugins that pipeline files require, checks who signed
// them, puts their programs into the store, and notes all of it in the lock beside the files.
//
// What is locked stays: its digest goes before a tag that was moved, its signer before another one, and nothing is asked of
// a registry where lock and store have everything. A newer version is taken only where the lock's no longer meets the file, or
// on demand. The signer is locked at the first use; from then on a release by somebody else, or by nobody,
// is refused until a person accepts it.
//
// A lock is written once all plugins are chosen and installed, or not at all.
//
// How releases are read is the concern of package registry, how programs are kept that of package
// store. Programs are started only to describe themselves, only where they came in a plain archive, and only
// after the archive had the sha256 that the file demands.
package install
