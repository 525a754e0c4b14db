// Package host runs stages as plugin processes: it checks, starts,
// watches, restarts and stops them, and offers each as a Process with the
// methods of package sdk.
//
// What a plugin does can hurt only itself: its output is read in bounded
// lines and never parsed by a library, it gets only the environment that it
// needs, a crash is answered by a restart, a process that has stopped is
// killed by its number, and all of them end with racflow, however that ends:
// each watches its standard input, which the host holds open.
//
// A third party's plugin is confined as well as the system lets racflow (package confine): it reads the
// system's programs, its own files, what the pipeline file allows it and the paths in its
// config; HOME, TMPDIR and the working folder are its own and end with it; whatever it has started
// ends with it, too.
//
// A request that ends its process is sent again, alone, and fails after the third
// time; package retry then looks for the row to blame. The error says how the
// process ended, and its last words. A process that ends 64 times in a row without
// an answer is not started any more: the stage's requests then fail with one
// message. A request whose time is over returns when its process has noticed or,
// after five seconds, has been replaced.
//
// A stage, and all of them together, may be given a bound of memory (package memory): a process that
// goes over it is ended, as one that crashes is restarted, and the error names bound and size. After a
// SIGKILL the error says whether the kernel has ended processes for lack of memory.
//
// A single row is blamed only for the end of a process that had answered nothing else.
// The request that it stood in is kept for the plugin's author (replay.go).
//
// Numbers that a stage returns are checked as they arrive (package wire): a row
// with one that is not finite or out of its bounds fails, and names the stage.
//
// The secrets of a stage's config travel in Configure alone. Whatever any plugin
// says is searched for the secrets of all of them (see package redact), in logs,
// errors and results, before the engine sees it.
//
// What the engine shares with stages (limits, the response cache) is one listener on a unix
// socket: a process shows the certificate and the token that Configure gave it, and its
// end frees what it holds.
//
// All sockets and folders of a host's processes are in one temporary folder (disk.TempFolder). A state folder that
// cannot be made or written is replaced by one in there, but for a store's.
//
// The package knows neither pipelines nor records: what is asked of a stage,
// in which batches and how often, is the engine's affair. It needs unix
// sockets and process groups.
package host
