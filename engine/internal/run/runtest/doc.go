// Package runtest opens pipelines for tests: from a file in a temporary folder, with stages that
// run behind the real wire, in memory. The test chooses the stages: the engine's own tests take
// those of engine/internal/enginetest.
package runtest
