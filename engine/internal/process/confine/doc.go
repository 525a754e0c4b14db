// Package confine runs a third-party plugin with access to a few things only: system programs and
// libraries, folders of its own, what the pipeline file allows, and, of the network, at most a
// proxy in the engine.
//
// The running program executes itself twice for each plugin; package cage says what these processes
// do. Every program that links this package can play their roles, even a test.
//
// Confinement needs Linux. Probe finds out by trial how much of it the kernel can enforce; elsewhere
// a plugin runs unconfined, and Gaps says so. A confined plugin can still use any amount of processor
// time. Root confines a plugin no better than other users do.
package confine
