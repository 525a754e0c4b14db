// Package runtest opens pipelines for tests: from a file in a temporary folder, with stages that
// run in memory behind the real wire protocol. The test chooses the stages; the engine's own tests
// use engine/internal/enginetest.
package runtest
