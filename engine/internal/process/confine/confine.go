package confine

import (
	"net"
	"slices"
	"strings"
	"syscall"
)

// Kernel says what can be enforced on this system.
type Kernel struct {
	Linux      bool
	Landlock   int  // version of its interface; 0: none
	Namespaces bool // a network of its own
	View       bool // a file system in which nothing else is to be seen
	Filter     bool // of system calls
}

// The versions of Landlock that first enforce something.
const (
	landlockTruncate = 3
	landlockTCP      = 4
	landlockScope    = 6
	landlockUnix     = 9
)

// Gaps says what of a policy this system cannot enforce, each in one plain phrase; none: it
// enforces all of it.
func (k Kernel) Gaps(p Policy) []string {
	switch {
	case p.Unconfined:
		return nil // nothing was asked for
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
	gap(k.Landlock == 0 && k.View, "it can change what it may only read")
	gap(k.Landlock > 0 && k.Landlock < landlockTruncate && !k.View, "it can empty files that it may not read")
	gap(!k.Namespaces && !k.Filter, "it reaches the network")
	gap(!k.Namespaces && k.Filter && p.Network && k.Landlock < landlockTCP, "it reaches every host over TCP")
	gap(!k.Namespaces && k.Filter && p.Network && k.Landlock >= landlockTCP && len(p.Local) == 0, "it reaches every host at one TCP port, that of the proxy's relay")
	gap(!k.Namespaces && k.Filter && p.Network && k.Landlock >= landlockTCP && len(p.Local) > 0, "it reaches every host at the TCP ports "+ports(p.Local)+" and that of the proxy's relay")
	gap(!k.View && k.Landlock < landlockUnix, "it can connect to the sockets of your other programs, such as those of a container engine or the desktop")
	gap(!k.Namespaces && k.Landlock < landlockScope, "it can connect to abstract sockets")
	gap(k.Landlock < landlockScope, "it can send signals to your other processes")
	gap(k.Landlock == 0, "it can read the memory of your other processes that let it, and attach to them")
	return gaps
}

// ports lists those of some hosts, each once.
func ports(hosts []string) string {
	var all []string
	for _, host := range hosts {
		if _, port, err := net.SplitHostPort(host); err == nil && !slices.Contains(all, port) {
			all = append(all, port)
		}
	}
	return strings.Join(all, ", ")
}

// Policy says what a program may touch beside the system's own programs, libraries and settings.
// Paths are absolute.
type Policy struct {
	Read, Write      []string // files and folders; what does not exist is left out
	Home, Work, Temp string   // folders of its own, which exist
	Sockets          string   // the folder in which it listens
	Services         string   // the folder with the socket of the engine's services; empty: none
	Network          bool     // it may connect to Proxy, which HTTP_PROXY and HTTPS_PROXY name
	Proxy            string   // the unix socket of the engine's proxy
	Local            []string // HOST:PORT on this machine's loopback that Proxy connects to; it reaches them at the same address, without asking a proxy
	Unconfined       bool     // it runs as the user, and what it starts still ends with it
	Remove           []string // folders that are removed once it has ended
}

// Exit says how a program ended.
type Exit struct {
	PID    int
	Status int            // the exit status, unless Signal is set
	Signal syscall.Signal // that ended it; 0: none
	Peak   int64          // bytes of memory that it used at the most; 0: not known
}
