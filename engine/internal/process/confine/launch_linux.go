package confine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/racflow/racflow/engine/internal/process/confine/cage"
)

// keeper is racflow's end of the connection to the processes that package cage describes.
type keeper struct {
	spec   cage.Spec
	proxy  *Proxy
	conn   *net.UnixConn
	theirs *os.File // the other end, until start

	process atomic.Pointer[os.Process] // set by start
}

// endWithin is how long a keeper may take to end all its processes.
const endWithin = 5 * time.Second

// Command prepares a program that a policy confines. self is a program that links this package,
// usually the running one. Set the environment, input and outputs of the returned command for the
// program, and start it with the Control.
func Command(self string, p Policy, path string, args ...string) (*exec.Cmd, *Control, error) {
	k := &keeper{proxy: p.Proxy, spec: cage.Spec{
		Path: path, Args: args, Read: p.Read, Write: p.Write, Home: p.Home, Work: p.Work, Temp: p.Temp,
		Sockets: p.Sockets, Services: p.Services, Network: p.Network, Local: places(p.Local),
		Processes: p.Processes, Disk: p.Disk, Unconfined: p.Unconfined, Remove: p.Remove,
	}}
	if err := k.connect(); err != nil {
		return nil, nil, fmt.Errorf("connect to the launcher of %s: %w", path, err)
	}
	c := Plain(exec.Command(self, "confine", path)) //nolint:noctx // it outlives the context of its start; arguments are for people
	c.keep = k
	return c.cmd, c, nil
}

// connect makes the two ends of the connection.
func (k *keeper) connect() error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	own, theirs := os.NewFile(uintptr(pair[0]), "keeper"), os.NewFile(uintptr(pair[1]), "racflow")
	defer own.Close()
	conn, err := net.FileConn(own)
	if err == nil {
		err = unix.SetsockoptInt(pair[0], unix.SOL_SOCKET, unix.SO_PASSCRED, 1) // for both descriptors
	}
	if err != nil {
		_ = theirs.Close()
		return err
	}
	k.conn, k.theirs = conn.(*net.UnixConn), theirs
	return nil
}

// launch starts the keeper and tells it what to start.
func (k *keeper) launch(cmd *exec.Cmd) error {
	k.spec.Env, cmd.Env = cmd.Environ(), []string{cage.Mark + "=" + cage.Outer}
	cmd.ExtraFiles = []*os.File{k.theirs}
	err := cmd.Start()
	_ = k.theirs.Close()
	if err != nil {
		_ = k.conn.Close()
		return fmt.Errorf("start the launcher: %w", err)
	}
	k.process.Store(cmd.Process)
	message, err := json.Marshal(k.spec)
	if err == nil {
		_, err = k.conn.Write(message)
	}
	if err != nil {
		_ = k.conn.Close() // so that it ends
		_ = cmd.Wait()
		return fmt.Errorf("tell the launcher of %s what to start: %w", k.spec.Path, err)
	}
	return nil
}

// start starts the keeper, and waits until the keeper has started the program.
func (k *keeper) start(c *Control) error {
	if err := k.launch(c.cmd); err != nil {
		return err
	}
	first, pid, err := k.first()
	if err == nil && first.Started != 0 {
		c.pid.Store(int64(pid))
		go k.wait(c)
		return nil
	}
	_ = k.conn.Close()
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

// first returns the first report that is no listener, and the process id that came with it. The
// proxy takes the listeners.
func (k *keeper) first() (r cage.Report, pid int, err error) {
	for {
		var listener *os.File
		if r, listener, pid, err = k.receive(); err != nil || listener == nil {
			return r, pid, err
		}
		l, err := net.FileListener(listener)
		_ = listener.Close()
		if err == nil && k.proxy != nil {
			err = k.proxy.accept(l, r.Host)
		}
		if err != nil {
			return r, 0, err
		}
	}
}

// receive returns the next report, with the listener and the process id that came with it.
func (k *keeper) receive() (r cage.Report, listener *os.File, pid int, err error) {
	message, with := make([]byte, cage.MaxMessage), make([]byte, unix.CmsgSpace(4)+unix.CmsgSpace(unix.SizeofUcred))
	n, m, _, _, err := k.conn.ReadMsgUnix(message, with)
	if err == nil && n == 0 {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		err = json.Unmarshal(message[:n], &r)
	}
	if err != nil {
		return r, nil, 0, err
	}
	pid = r.Started
	parts, err := unix.ParseSocketControlMessage(with[:m])
	for _, part := range parts {
		if fds, err := unix.ParseUnixRights(&part); err == nil && len(fds) == 1 {
			listener = os.NewFile(uintptr(fds[0]), "listener")
		}
		if sender, err := unix.ParseUnixCredentials(&part); err == nil && r.Started == cage.Translated {
			pid = int(sender.Pid)
		}
	}
	return r, listener, pid, err
}

// wait waits until the keeper has reported the program's end and has ended itself.
func (k *keeper) wait(c *Control) {
	last, _, _, err := k.receive()
	_ = k.conn.Close()
	_ = c.cmd.Wait() // ProcessState has the details
	if err != nil || last.Ended == nil {
		c.killGroup() // the keeper was killed and can no longer do this
		c.ended <- c.exit()
		return
	}
	c.ended <- Exit{PID: c.PID(), Status: last.Ended.Status, Signal: last.Ended.Signal}
}

// end asks the keeper to end everything, and kills the keeper if it does not.
func (k *keeper) end() {
	_, _ = k.conn.Write([]byte{0}) // fails only if the keeper has ended
	if process := k.process.Load(); process != nil {
		time.AfterFunc(endWithin, func() { _ = process.Kill() })
	}
}

// Probe finds out what this system can enforce: it confines a process that then ends. It does so
// once and takes about 20 ms.
func Probe() Kernel { return probed() }

var probed = sync.OnceValue(func() Kernel {
	kernel := Kernel{Linux: true}
	self, err := os.Executable()
	if err != nil {
		return kernel
	}
	dir, err := os.MkdirTemp("", "racflow")
	if err != nil {
		return kernel
	}
	defer os.RemoveAll(dir)
	k := &keeper{spec: cage.Spec{Path: self, Home: dir, Work: dir, Temp: dir, Probe: true}}
	if k.connect() != nil {
		return kernel
	}
	cmd := exec.Command(self) //nolint:noctx // it ends within milliseconds
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if k.launch(cmd) != nil {
		return kernel
	}
	if first, _, err := k.first(); err == nil && first.Kernel != nil {
		kernel.Kernel = *first.Kernel
	}
	_ = k.conn.Close()
	_ = cmd.Wait()
	return kernel
})

// Used returns the bytes that the files below some folders occupy. An empty file counts, too, since
// the system has to store its name.
func Used(folders ...string) (sum int64) {
	for _, folder := range folders {
		_ = filepath.WalkDir(folder, func(_ string, e fs.DirEntry, err error) error {
			if err != nil {
				return nil //nolint:nilerr // it was removed meanwhile
			}
			if info, err := e.Info(); err == nil {
				sum += max(info.Sys().(*syscall.Stat_t).Blocks*512, 512)
			}
			return nil
		})
	}
	return sum
}
