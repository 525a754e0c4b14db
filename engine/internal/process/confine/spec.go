package confine

import (
	"syscall"
)

// This file defines the messages between the three processes of package confine.

// Mark is the environment variable that turns a process which links package confine into a
// launcher: Keep or Cage. Plugins do not get it.
const Mark = "RACFLOW_CONFINE"

// The values of Mark.
const (
	Keep = "keep"
	Cage = "cage"
)

// Pipe is the file descriptor through which a launcher talks to the process that started it.
const Pipe = 3

// Spec describes the program to start, and what it may access.
type Spec struct {
	Path string
	Args []string // without the program itself

	Read, Write       []string // files and folders
	Home, Work, Temp  string
	Sockets, Services string
	Network           bool     // the program reaches Proxy at 127.0.0.1
	Proxy             string   // a unix socket
	Local             []string // HOST:PORT on the loopback of racflow's machine; Proxy connects to these
	Unconfined        bool
	Remove            []string // folders to remove at the end
	Probe             bool     // report what can be enforced, and start no program
	Namespaces        bool     // the keeper could create them
	Port              int      // of the keeper's relay, without namespaces
}

// Report is a message from the keeper to the host (one JSON object per line), or from the cage
// process to the keeper (one per message).
type Report struct {
	Started int       `json:",omitempty"` // process id of the running program
	Failed  *Failure  `json:",omitempty"` // the program could not be started
	Ended   *Ended    `json:",omitempty"`
	Kernel  *Enforced `json:",omitempty"` // result of a probe
	Again   bool      `json:",omitempty"` // namespaces do not work: try without
	Host    string    `json:",omitempty"` // destination of the connections to the listener in this message; empty: the proxy itself
}

// Failure says why a program did not start.
type Failure struct {
	Doing string
	Errno syscall.Errno // 0: none
	Text  string        // without Errno
}

// Ended describes how a program ended.
type Ended struct {
	Status int // exit status
	Signal syscall.Signal
	Peak   int64 // peak memory in bytes
}

// Enforced lists what could be enforced.
type Enforced struct {
	Landlock   int  // version of the interface; 0: none
	Namespaces bool // for users, network and SysV IPC
	View       bool // the program sees only the files that it may access
	Filter     bool // filters system calls
}
