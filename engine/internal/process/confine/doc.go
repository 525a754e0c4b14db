// Package confine runs a third party's plugin so that it reaches nothing but what it was
// given: system programs and libraries, folders of its own, what the pipeline file allows, and
// of the network at most a proxy of the engine's.
//
// The program that runs executes itself twice for each plugin. The first process keeps the
// plugin (keep.go): it reports how the plugin ended, and ends whatever the plugin has started,
// also when racflow is killed. The second confines itself and becomes the plugin (internal/cage).
// Two are needed since racflow keeps other processes out of its memory, and a process that does so cannot make a user namespace.
// Both do their work in init functions, so any program that links this package can be them, tests too.
//
// Confinement needs Linux. How much of it a kernel can enforce is what Probe finds out by
// trying; elsewhere a plugin runs as it always has, and Gaps says so. The plugin still uses the machine's
// processor and disk as it likes, sees the command lines of other processes, and root confines
// it from outside no better than anybody else.
package confine
