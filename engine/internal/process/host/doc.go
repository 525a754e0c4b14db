// Package host runs stages as plugin processes: it checks, starts, watches, restarts and stops
// them, and offers each as a Process with the methods of package sdk.
//
// A misbehaving plugin harms only itself. The host reads its output in bounded lines that no
// library parses, passes it only the environment variables that it needs, restarts it after a
// crash, and kills it by process id when it hangs. Every plugin ends when racflow ends, even after
// a crash of racflow: it watches its standard input, which the host holds open.
//
// A third-party plugin runs confined, as far as the system allows (package confine). It can read
// the system's programs, its own files, what the pipeline file allows and the paths in its config.
// HOME, TMPDIR and the working folder are its own and are removed when it ends; every process that
// it started ends with it.
//
// If a process ends during a request, the host sends that request again, alone; after three crashes
// the request fails, and package retry searches for the row to blame. The error says how the
// process ended and quotes its last output. If a process ends 64 times in a row without an answer,
// the host does not restart it, and all requests of the stage fail with one message. A request that
// exceeds its time limit returns when the process has noticed, or after five seconds, when the host
// has replaced the process.
//
// Memory bounds can be set for each stage and for all together (package memory). A process above
// its bound is ended, then restarted as after a crash; the error names the bound and the size.
// After a SIGKILL the error says that the system may have ended the process for lack of memory.
//
// A single row is blamed only if its process had answered nothing else before it ended.
//
// Numbers in replies are checked on arrival (package wire): a row with a number that is not finite
// or out of bounds fails, and the error names the stage.
//
// Only Configure carries the secrets of a stage's config. The host replaces the secrets of all
// stages (package redact) in every log line, error and result of any plugin before the engine sees
// it.
//
// The engine serves what stages share (limits, the response cache) on one unix socket. A process
// authenticates with the certificate and the token from Configure. When it ends, everything that it
// holds there is released.
//
// All sockets and folders of a host's processes are in one temporary folder. If a stage's
// state folder cannot be created or written, a folder in there replaces it, except for stores.
//
// The package knows neither pipelines nor records: the engine decides what to ask a stage, in which
// batches and how often. The package needs unix sockets and process groups.
package host
