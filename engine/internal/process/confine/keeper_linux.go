package confine

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	// its init function
	// its init function
)

// keeper is racflow's end of the connection to the process that supervises a program.
type keeper struct {
	spec   Spec
	socket *os.File // set by Command
	theirs *os.File // the other end, until start

	process atomic.Pointer[os.Process] // set by start
}

// endWithin is how long a keeper may take to end all its processes.
const endWithin = 5 * time.Second

// Command prepares a program that a policy confines. self is a program that links this package,
// usually the running one. Set the environment, input and outputs of the returned command for the
// program, and start it with the Control.
func Command(self string, p Policy, path string, args ...string) (*exec.Cmd, *Control, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(pair[0], true) // so that reads block no thread
	}
	if err != nil {
		return nil, nil, fmt.Errorf("connect to the launcher of %s: %w", path, err)
	}
	cmd := exec.Command(self, "confine", path) //nolint:noctx // it outlives the context of its start; arguments are for people
	k := &keeper{
		socket: os.NewFile(uintptr(pair[0]), "keeper"), theirs: os.NewFile(uintptr(pair[1]), "racflow"),
		spec: Spec{
			Path: path, Args: args, Read: p.Read, Write: p.Write, Home: p.Home, Work: p.Work, Temp: p.Temp,
			Sockets: p.Sockets, Services: p.Services, Network: p.Network, Proxy: p.Proxy, Local: p.Local, Unconfined: p.Unconfined, Remove: p.Remove,
		},
	}
	c := Plain(cmd)
	c.keep = k
	return cmd, c, nil
}

// start starts the keeper, and waits until the keeper has started the program.
func (k *keeper) start(c *Control) error {
	c.cmd.Env = append(slices.Clone(c.cmd.Env), Mark+"="+Keep)
	c.cmd.ExtraFiles = []*os.File{k.theirs}
	err := c.cmd.Start()
	_ = k.theirs.Close()
	if err != nil {
		_ = k.socket.Close()
		return fmt.Errorf("start the launcher: %w", err)
	}
	k.process.Store(c.cmd.Process)
	// The keeper reads this first, so writing fails only if the keeper has ended.
	_ = json.NewEncoder(k.socket).Encode(k.spec)
	in := json.NewDecoder(bufio.NewReader(k.socket))
	var first Report
	err = in.Decode(&first)
	if err == nil && first.Started != 0 {
		c.pid.Store(int64(first.Started))
		go k.wait(c, in)
		return nil
	}
	_ = k.socket.Close()
	waited := c.cmd.Wait()
	switch f := first.Failed; {
	case err != nil:
		return fmt.Errorf("the launcher of %s ended (%w) before it had started it: %w", k.spec.Path, cmp.Or(waited, os.ErrProcessDone), err)
	case f == nil:
		return fmt.Errorf("the launcher of %s said nothing of its start", k.spec.Path)
	case f.Text != "":
		return fmt.Errorf("%s could not be confined: %s: %s", k.spec.Path, f.Doing, f.Text)
	default:
		return &os.PathError{Op: f.Doing, Path: k.spec.Path, Err: f.Errno}
	}
}

// wait waits until the keeper has reported the program's end and has ended itself.
func (k *keeper) wait(c *Control, in *json.Decoder) {
	var last Report
	for last.Ended == nil && in.Decode(&last) == nil {
	}
	_ = k.socket.Close()
	_ = c.cmd.Wait() // ProcessState has the details
	if last.Ended == nil {
		c.killGroup() // the keeper was killed and can no longer do this
		e := c.exit()
		e.Peak = 0 // it would be the keeper's
		c.ended <- e
		return
	}
	c.ended <- Exit{PID: c.PID(), Status: last.Ended.Status, Signal: last.Ended.Signal, Peak: last.Ended.Peak}
}

// end asks the keeper to end everything, and kills the keeper if it does not.
func (k *keeper) end() {
	_, _ = k.socket.WriteString("\n") // fails only if the keeper has ended
	if process := k.process.Load(); process != nil {
		time.AfterFunc(endWithin, func() { _ = process.Kill() })
	}
}
