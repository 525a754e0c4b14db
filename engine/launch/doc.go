// Package launch is how the engine asks for the process of a stage: the request, and
// the function that answers it. Whoever opens a pipeline gives the function: the
// command starts processes by package host, a test opens stages in memory.
//
// It starts nothing itself.
package launch
