// Package cage is the code that runs between racflow and a third-party plugin, in processes of its
// own.
//
// A program that links this package does not reach its main function if the variable Mark is set. It
// takes two such processes: racflow keeps other processes out of its memory, and a process like that
// cannot create a user namespace. The first one, outer, creates the namespaces together with the
// second one, init, and then only waits for init. Init is the first process of its namespace, so all
// that the plugin has started ends with it. It makes the plugin's network and view of files. Then one
// of its threads restricts itself and starts the plugin, which inherits the restrictions. The other
// threads stay unrestricted: they report how the plugin ended, and end it when racflow is gone. The
// plugin cannot attach to them, and can end init only together with itself.
//
// Each layer enforces what the others cannot. The namespaces hide other processes, all networks, and
// System V memory. The engine's proxy listens in the plugin's own network, and so do the allowed
// services of racflow's machine, at their usual addresses. The view, a root file system with only the
// plugin's allowed paths, hides all other files and sockets. It is read-only where the plugin may
// only read, so that modes and times stay, too. Landlock separates read from write access once more,
// and blocks signals and debuggers to outside processes. The filter of system calls blocks what the
// other layers miss.
//
// Without user namespaces, outer does the work of init itself. Landlock then confines the files, and
// the filter replaces the other layers as well as it can. Layers that the kernel lacks are left out.
// If a layer should work and fails, that is an error, and the plugin does not start.
//
// The package imports little, so that its init function runs before those of most other packages:
// these would take more time than all of the above.
package cage
