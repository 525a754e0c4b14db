// Package confine runs a third-party plugin with access to a few things only: system programs and
// libraries, folders of its own, what the pipeline file allows, and, of the network, at most a
// proxy in the engine.
//
// The running program executes itself twice for each plugin. The first process supervises the plugin
// (keep.go): it reports how the plugin ended and ends all processes of the plugin, even if racflow is killed.
// The second process confines itself and becomes the plugin (cage.go). It takes two, because racflow keeps
// other processes out of its memory, and such a process cannot create a user namespace. Both work in init
// functions, so every program that links this package can play both roles, even a test.
//
// Confinement needs Linux. Probe finds out by trial how much of it the kernel can enforce;
// elsewhere a plugin runs unconfined, and Gaps says so. A confined plugin can still use any amount
// of processor time and disk, and sees the command lines of other processes. Root confines a plugin
// no better than other users do.
package confine
