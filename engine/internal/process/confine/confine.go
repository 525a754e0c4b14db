package confine

import (
	"net"
	"slices"
	"strings"
	"syscall"

	"github.com/racflow/racflow/engine/internal/process/confine/cage"
)

// Kernel lists what this system can enforce.
type Kernel struct {
	Linux bool
	cage.Kernel
}

// Gaps returns the parts of a policy that this system cannot enforce, each as a plain phrase; none:
// it enforces the whole policy.
func (k Kernel) Gaps(p Policy) []string {
	switch {
	case p.Unconfined:
		return nil // the policy restricts nothing
	case !k.Linux:
		return []string{"nothing is enforced on this system: it reads and writes your files and reaches the network as you can"}
	}
	var gaps []string
	gap := func(open bool, what string) {
		if open {
			gaps = append(gaps, what)
		}
	}
	gap(k.Landlock == 0 && !k.View, "it reads and writes your files as you can")
	gap(k.Landlock == 0 && k.View && !k.ReadOnly, "it can change what it may only read")
	gap(k.Landlock > 0 && k.Landlock < cage.LandlockTruncate && !k.View, "it can empty files that it may not read")
	gap(k.Landlock > 0 && !k.ReadOnly && !k.Filter, "it can change the modes, owners, times and attributes of your files")
	gap(k.Landlock > 0 && !k.View && !k.Filter, "it can watch which of your files are used")
	gap(k.Landlock > 0 && !k.View, "it can tell whether a path exists that it knows, and see the size, times and attributes of the file")
	gap(!k.Filter, "it can make programs in folders of `write` that run with your rights, whoever starts them")
	gap(!k.Namespaces && !k.Filter, "it reaches the network")
	network := !k.Namespaces && k.Filter && p.Network
	gap(network, "it can listen for connections at a TCP port that the system picks")
	gap(network && k.Landlock < cage.LandlockTCP, "it reaches every host over TCP")
	gap(network && k.Landlock >= cage.LandlockTCP && len(p.Local) == 0, "it reaches every host at one TCP port, that of the proxy")
	gap(network && k.Landlock >= cage.LandlockTCP && len(p.Local) > 0, "it reaches every host at the TCP ports "+ports(p.Local)+" and that of the proxy")
	gap(!k.View && k.Landlock < cage.LandlockUnix, "it can connect to the sockets of your other programs, such as those of a container engine or the desktop")
	gap(!k.Namespaces && k.Landlock < cage.LandlockScope, "it can connect to abstract sockets")
	gap(!k.Namespaces && k.Landlock < cage.LandlockScope, "it can send signals to your other processes, and leave processes behind")
	gap(!k.Namespaces && k.Landlock == 0, "it can read the memory of your other processes that let it, and attach to them")
	gap(!k.Namespaces && !k.Filter, "it can change the limits and priorities of your other processes")
	gap(!k.Namespaces && !k.Filter, "it can use the shared memory, semaphores and message queues of your other programs")
	gap(!k.Filter, "it can use the keys that the kernel keeps for you, and reach the host of a virtual machine")
	gap(!k.Proc, "it sees the names, command lines and status of other processes")
	return gaps
}

// ports lists the ports of some hosts, each once.
func ports(hosts []string) string {
	var all []string
	for _, host := range hosts {
		if _, port, err := net.SplitHostPort(host); err == nil && !slices.Contains(all, port) {
			all = append(all, port)
		}
	}
	return strings.Join(all, ", ")
}

// Policy lists what a program may access besides the system's own programs, libraries and settings.
// Paths are absolute.
type Policy struct {
	Read, Write      []string // files and folders; missing ones are ignored
	Home, Work, Temp string   // the program's own folders; they exist
	Sockets          string   // the folder of the socket on which it listens
	Services         string   // the folder with the socket of the engine's services; empty: none
	Network          bool     // it may connect to Proxy through HTTP_PROXY and HTTPS_PROXY
	Proxy            *Proxy
	Local            []string // HOST:PORT on this machine's loopback: the program connects to the same address, without proxy settings, and Proxy forwards
	Processes        int      // how many processes and threads it may have, where the kernel counts them; 0: any number
	Disk             int64    // how many bytes a file that it writes may have; 0: any number
	Unconfined       bool     // it runs as the user without limits; its child processes still end with it
	Remove           []string // folders to remove after it has ended
}

// Exit describes how a program ended.
type Exit struct {
	PID    int
	Status int            // exit status, unless Signal is set
	Signal syscall.Signal // signal that ended it; 0: none
}
