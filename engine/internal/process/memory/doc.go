// Package memory watches how much memory processes hold, each with all that it has started,
// and has those ended that go over a bound. It also knows whether the kernel has ended
// processes for lack of memory, and reads and writes sizes such as 2GiB.
//
// What counts is memory that only the death of a process, or swapping, gives back: anonymous and
// shared memory, resident or swapped out. Files that are mapped do not count, since the
// system drops their pages when it needs room. Pages that forked processes share count once,
// where the system lets that be seen.
//
// A look is taken some times a second, so a process can go over its bound for that long: nothing
// here takes the place of a control group. Only Linux is watched. The package ends
// nothing itself.
package memory
