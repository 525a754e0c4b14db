// Package enginetest has the stages that the engine's tests work with: one that
// learns and embeds, an exact store, voters of which one learns, prompts and elections, each
// as small as it can be. They run behind the real wire, in memory, so that a test of the
// engine needs neither a process nor a built-in stage.
//
// It says nothing of how well built-in stages do their work, and no program imports
// it.
package enginetest
