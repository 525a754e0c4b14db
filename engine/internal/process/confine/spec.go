package confine

import (
	"syscall"
)

// This file is what the three processes of package confine send each other.

// Mark is the environment variable that makes a process that links package confine a
// launcher: Keep or Cage. No plugin gets it.
const Mark = "RACFLOW_CONFINE"

// The values of Mark.
const (
	Keep = "keep"
	Cage = "cage"
)

// Pipe is the file descriptor by which a launcher speaks with the process that started it.
const Pipe = 3

// Spec says which program to start, and what it may touch.
type Spec struct {
	Path string
	Args []string // without the program itself

	Read, Write       []string // files and folders
	Home, Work, Temp  string
	Sockets, Services string
	Network           bool     // it reaches Proxy at 127.0.0.1
	Proxy             string   // a unix socket
	Local             []string // HOST:PORT on the loopback of racflow's machine, which Proxy connects to
	Unconfined        bool
	Remove            []string // folders that are removed when all is over
	Probe             bool     // say what can be enforced, in place of starting a program
	Namespaces        bool     // the keeper could make them
	Port              int      // of the keeper's relay, without namespaces
}

// Report is a message of the keeper to the host, one JSON object a line, or of the cage to the
// keeper, one a message.
type Report struct {
	Started int       `json:",omitempty"` // the program runs: its process id
	Failed  *Failure  `json:",omitempty"` // it could not be started
	Ended   *Ended    `json:",omitempty"`
	Kernel  *Enforced `json:",omitempty"` // of a probe
	Again   bool      `json:",omitempty"` // namespaces cannot be used: try without
	Host    string    `json:",omitempty"` // that the connections of the listener with this message are for; empty: the proxy itself
}

// Failure says why a program was not started.
type Failure struct {
	Doing string
	Errno syscall.Errno // 0: none
	Text  string        // without Errno
}

// Ended says how a program ended.
type Ended struct {
	Status int // exit status
	Signal syscall.Signal
	Peak   int64 // bytes of memory in use at the most
}

// Enforced says what could be enforced.
type Enforced struct {
	Landlock   int  // version of the interface; 0: none
	Namespaces bool // of users, network and SysV IPC
	View       bool // the program sees nothing of the file system but what it may touch
	Filter     bool // of system calls
}
