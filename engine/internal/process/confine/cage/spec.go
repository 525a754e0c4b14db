package cage

import "syscall"

// Mark is the environment variable that turns a process which links this package into outer or
// init. Plugins do not get it.
const Mark = "RACFLOW_CONFINE"

// The values of Mark.
const (
	Outer = "outer"
	Init  = "init"
)

// Pipe is the file descriptor of the socket to racflow. Each message is one Spec or Report in JSON.
const Pipe = 3

// MaxMessage is the maximum size of a message in bytes.
const MaxMessage = 256 << 10

// Spec describes the program to start, and what it may access.
type Spec struct {
	Path string
	Args []string // without the program itself
	Env  []string

	Read, Write       []string // files and folders
	Home, Work, Temp  string
	Sockets, Services string
	Network           bool // racflow's proxy accepts connections in the program's network
	Local             []Local
	Processes         int   // how many processes and threads it may have; 0: any number
	Disk              int64 // how many bytes a file that it writes may have; 0: any number
	Unconfined        bool
	Remove            []string // folders to remove at the end
	Probe             bool     // report what can be enforced, and start no program
}

// Local is an address at which the program reaches a host of racflow's machine, through the proxy.
type Local struct {
	IP   []byte // 4 or 16
	Port uint16
	Host string // HOST:PORT
}

// Report is a message to racflow.
type Report struct {
	Started int      `json:",omitempty"` // process id of the running program, or Translated
	Failed  *Failure `json:",omitempty"` // the program could not be started
	Ended   *Ended   `json:",omitempty"`
	Kernel  *Kernel  `json:",omitempty"` // result of a probe
	Host    string   `json:",omitempty"` // destination of the connections to the listener in this message; empty: the proxy itself
}

// Translated says that a process id is in the credentials of the message, which the kernel
// translates from a namespace to another.
const Translated = -1

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
}

// Kernel lists what this system can enforce.
type Kernel struct {
	Landlock   int  // version of its interface; 0: none
	Namespaces bool // for users, processes, network, SysV IPC and mounts
	View       bool // a file system that shows only the allowed paths
	ReadOnly   bool // what the view shows cannot be changed in any way
	Proc       bool // other processes are not seen in /proc
	Filter     bool // filters system calls
}

// The Landlock versions that first handle more than the first one does.
const (
	LandlockRefer    = 2
	LandlockTruncate = 3
	LandlockTCP      = 4
	LandlockIoctl    = 5
	LandlockScope    = 6
	LandlockUnix     = 9
	LandlockUDP      = 10
)
