package confine

// This file confines its own process and then turns it into a third-party plugin, on Linux. keep.go
// has started the process, in namespaces of its own if the kernel allows that.
//
// Each layer enforces what the others cannot. The network namespace blocks the network, including
// UDP and MPTCP, which Landlock does not cover, and abstract sockets; inside it, the engine's proxy
// listens, and so do the allowed services of racflow's machine, at their usual addresses. The view,
// a root file system with only the plugin's allowed paths, hides the named sockets of other
// programs, and all other files even without Landlock. Landlock separates read from write access,
// and blocks signals and debuggers to outside processes. The system call filter blocks the socket
// types and calls that the other layers miss; without a network namespace it replaces that as well
// as it can.
//
// Layers that the kernel lacks are left out. If a layer should work and fails, that is an error,
// and the plugin does not start.
