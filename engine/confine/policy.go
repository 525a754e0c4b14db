package confine

import "syscall"

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
