package confine

// This file confines its own process and then becomes a third party's plugin, on Linux. The
// process was started by keep.go, in namespaces of its own where the kernel lets it.
//
// Each layer does what the others cannot. The network namespace takes away the network, also
// MPTCP and UDP, which Landlock does not know, and abstract sockets; in it the engine's proxy listens, and
// what the plugin may reach on racflow's machine, at the same address. The view, a root of its own
// in which only what the plugin may touch is mounted, hides the named sockets of other
// programs, and the rest of the file system even where there is no Landlock. Landlock tells
// reading from writing, and keeps signals and debuggers inside. The filter of system calls keeps away
// kinds of sockets and calls that none of these covers; without a network namespace
// it takes its place, as well as it can.
//
// What the kernel does not have is left out; a layer that should work and fails is an error,
// and the plugin is not started.
