package confine

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/racflow/racflow/sdk/support"
)

// A keeper process never reaches its main function. The thread that runs init functions is the
// process's first and lives as long as the process; PR_SET_PDEATHSIG of the child needs such a
// thread.
func init() {
	if os.Getenv(Mark) == Keep {
		unix.CloseOnExec(Pipe)
		host := os.NewFile(Pipe, "racflow")
		if host == nil || run(host) != nil {
			syscall.Exit(1)
		}
		syscall.Exit(0) // os.Exit would wait a second in the race detector
	}
}

// grace is how long a plugin may outlive racflow.
const grace = 500 * time.Millisecond

// run supervises one program from its start to its end.
func run(host *os.File) error {
	in := bufio.NewReader(host)
	line, err := in.ReadBytes('\n')
	var s Spec
	if err == nil {
		err = json.Unmarshal(line, &s)
	}
	if err != nil {
		return err
	}
	reports := json.NewEncoder(host)
	_ = os.Unsetenv(Mark)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return reports.Encode(Report{Failed: failure("become the subreaper of its processes", err)})
	}
	var over atomic.Bool
	go func() {
		if _, err := in.ReadByte(); err != nil {
			// racflow has ended. The plugin notices by its standard input and may end by itself.
			time.Sleep(grace)
		}
		over.Store(true)
		killChildren()
	}()
	child, first, err := startKept(&s)
	if err != nil {
		first.Failed = failure("start it", err)
	}
	if first.Failed != nil || s.Probe {
		endChildren()
		remove(s.Remove)
		return reports.Encode(first)
	}
	if over.Load() {
		killChildren()
	}
	// From here on no process may read this one's memory, and only the plugin keeps its pipes open.
	_ = support.NoDump()
	detach()
	_ = reports.Encode(Report{Started: child})
	ended := wait(child)
	endChildren()
	remove(s.Remove)
	return reports.Encode(Report{Ended: ended})
}

func failure(doing string, err error) *Failure {
	f := &Failure{Doing: doing}
	if !errors.As(err, &f.Errno) {
		f.Text = err.Error()
	}
	return f
}

// detach closes the standard streams, which belong to the plugin.
func detach() {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return
	}
	for fd := range 3 {
		_ = unix.Dup3(int(null.Fd()), fd, 0)
	}
	_ = null.Close()
}

func remove(folders []string) {
	for _, dir := range folders {
		_ = os.RemoveAll(dir)
	}
}

// wait reaps child processes until the program has ended.
func wait(child int) *Ended {
	for {
		var status unix.WaitStatus
		var usage unix.Rusage
		pid, err := unix.Wait4(-1, &status, 0, &usage)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return nil // impossible: the program stays a child until it is reaped
		case pid == child && status.Signaled():
			return &Ended{Signal: status.Signal(), Peak: usage.Maxrss << 10}
		case pid == child && status.Exited():
			return &Ended{Status: status.ExitStatus(), Peak: usage.Maxrss << 10}
		}
	}
}
