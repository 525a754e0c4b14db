package confine

import (
	"net"
	"slices"
	"strings"
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
