package support

// This file protects this process from other processes of the same user, as far as the system can.
// From then on, only root can read its memory and the environment of its start, attach a debugger, or
// get a core dump. A program starts readable, so each process calls NoDump before it gets the first
// secret.

// NoDumpVariable is an environment variable. If it is "1", processes stay readable, for debuggers and
// core dumps; plugins inherit it.
const NoDumpVariable = "RACFLOW_DUMPABLE"
