// Package memory measures how much memory processes and their descendants hold, and calls a function
// to end those that exceed a bound. It also parses and formats sizes such as 2GiB.
//
// It counts anonymous and shared memory that processes have mapped, resident or swapped out, and
// their page tables: only the end of a process, or swapping, frees that. It does not count mapped
// files, because the system drops their pages when it needs room. Pages that forked processes share
// count once, if the system reports them. The system does not report to users what else it holds for
// a process: buffers of pipes and sockets, and pages of shared memory that the process no longer
// maps.
//
// It also counts processes, threads and files; a function counts the files. One measurement serves
// all bounds.
//
// It measures several times a second, so a process can exceed its bound for that long: it does not
// replace a control group. It works only on Linux. The package itself ends no process.
package memory
