package support

// This file keeps other processes of the same user out of this one, as far
// as the system is able to: from then on only root reads its memory and the
// environment that it was started with, attaches a debugger to it, or gets a core
// dump of it. A program starts readable, so each process does this for itself,
// before it gets the first secret.

// NoDumpVariable is an environment variable. Where it is "1", processes stay readable,
// for debuggers and core dumps; plugins inherit it.
const NoDumpVariable = "RACFLOW_DUMPABLE"
