//go:build linux

package confine

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/racflow/racflow/engine/internal/process/confine/cage"
)

// The bounds of the spy.
const (
	manyProcesses = 150
	largeFile     = 1 << 20
)

// row is a line of the table in SECURITY.md. What begins with "no" fails.
type row struct{ can, with, without string }

var (
	files     = row{"read, list or change your files", "no", "no"}
	changes   = row{"change modes, times or attributes of what it reads", "no", "no"}
	memories  = row{"read the memory or environment of other processes, or attach to them", "no", "no"}
	signals   = row{"send signals to other processes", "no", "no"}
	limits    = row{"change limits, priority or processors of other processes", "no", "no"}
	sysv      = row{"use System V memory or queues of other programs", "no", "no"}
	networks  = row{"use a network that it was not given", "no", "no"}
	abstract  = row{"connect to abstract sockets", "no", "no"}
	named     = row{"connect to named sockets", "no", "yes, before Landlock 9"}
	lines     = row{"see command lines of other processes", "no", "yes"}
	internals = row{"use io_uring, keys, BPF or performance counters", "no", "no"}
	remains   = row{"leave processes behind", "no", "no"}
	large     = row{"write a file above its bound", "no", "no"}
	forks     = row{"start processes above its bound", "no; root: until racflow looks", "until racflow looks"}
	rows      = []row{files, changes, memories, signals, limits, sysv, networks, abstract, named, lines, internals, remains, large, forks}
)

// attack is what the spy tries.
type attack struct {
	row
	name  string
	root  bool // only root can do it without confinement
	may   bool // it depends on the machine whether it works without confinement
	spare bool // nobody should do it without confinement, or racflow prevents it also there
	do    func(at target) error
}

// succeeds reports whether the table says that it does.
func (a attack) succeeds(alone, root bool, landlock int) bool {
	if alone {
		return !strings.HasPrefix(a.without, "no") && (landlock < cage.LandlockUnix || !strings.Contains(a.without, "Landlock"))
	}
	return !strings.HasPrefix(a.with, "no") || root && strings.Contains(a.with, "root")
}

// of returns the path of a file in /proc of the victim.
func of(at target, name string) string { return fmt.Sprintf("/proc/%d/%s", at.Victim, name) }

func allowed(at target) string { return filepath.Join(at.Dir, "allowed", "file") }

// attacks are tried in this order: the last one leaves no room for others.
var attacks = []attack{
	{row: files, name: "read home", do: func(at target) error { return read(filepath.Join(at.Dir, "secret")) }},
	{row: files, name: "list home", do: func(at target) error { _, err := os.ReadDir(at.Dir); return err }},
	{row: files, name: "write home", do: func(at target) error { return os.WriteFile(filepath.Join(at.Dir, "new"), nil, 0o600) }},
	{row: files, name: "write allowed", do: func(at target) error { return os.WriteFile(filepath.Join(at.Dir, "allowed", "new"), nil, 0o600) }},
	{row: files, name: "folder by process", do: func(at target) error { _, err := os.ReadDir(of(at, "cwd")); return err }},
	{row: changes, name: "modes", do: func(at target) error { return os.Chmod(allowed(at), 0o777) }},
	{row: changes, name: "times", do: func(at target) error { return os.Chtimes(allowed(at), time.Now(), time.Now()) }},
	{row: changes, name: "owner", do: func(at target) error { return os.Chown(allowed(at), os.Getuid(), os.Getgid()) }},
	{row: changes, name: "attributes", may: true, do: func(at target) error { return unix.Setxattr(allowed(at), "user.x", []byte("x"), 0) }},
	{row: changes, name: "flags", may: true, do: func(at target) error {
		f, err := os.Open(allowed(at))
		if err != nil {
			return err
		}
		defer f.Close()
		return unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, 0x40) // not to be dumped
	}},
	{row: changes, name: "a system file", root: true, do: func(target) error { return same("/usr/bin/env") }},
	{row: changes, name: "a device", root: true, do: func(target) error { return same("/dev/null") }},
	{row: memories, name: "environment", do: func(at target) error { return read(of(at, "environ")) }},
	{row: memories, name: "memory", do: func(at target) error {
		f, err := os.Open(of(at, "mem"))
		if err == nil {
			err = f.Close()
		}
		return err
	}},
	{row: memories, name: "trace", may: true, do: func(at target) error { return call(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(at.Victim), 0) }},
	{row: memories, name: "trace what keeps it", spare: true, do: func(target) error {
		return call(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(os.Getppid()), 0)
	}},
	{row: signals, name: "signal", do: func(at target) error { return syscall.Kill(at.Victim, 0) }},
	{row: limits, name: "limits", do: func(at target) error { return unix.Prlimit(at.Victim, unix.RLIMIT_CORE, &unix.Rlimit{}, nil) }},
	{row: limits, name: "processors", do: func(at target) error {
		var all unix.CPUSet
		if err := unix.SchedGetaffinity(0, &all); err != nil {
			return err
		}
		return unix.SchedSetaffinity(at.Victim, &all)
	}},
	{row: limits, name: "priority", do: func(at target) error { return unix.Setpriority(unix.PRIO_PROCESS, at.Victim, 1) }},
	{row: limits, name: "scheduler", do: func(at target) error {
		return unix.SchedSetAttr(at.Victim, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_BATCH, Nice: 1}, 0)
	}},
	{row: limits, name: "priority of input and output", do: func(at target) error { return call(unix.SYS_IOPRIO_SET, 1, uintptr(at.Victim), 2<<13|4) }},
	{row: sysv, name: "memory of System V", do: func(at target) error {
		memory, err := unix.SysvShmAttach(at.Shared, 0, 0)
		if err == nil {
			err = unix.SysvShmDetach(memory)
		}
		return err
	}},
	{row: sysv, name: "queues of System V", do: func(at target) error {
		var state [256]byte
		return call(unix.SYS_MSGCTL, uintptr(at.Queue), unix.IPC_STAT, uintptr(unsafe.Pointer(&state)))
	}},
	{row: networks, name: "tcp", do: func(at target) error { return dial("tcp", at.TCP, false) }},
	{row: networks, name: "mptcp", do: func(at target) error { return dial("tcp", at.TCP, true) }},
	{row: networks, name: "udp", do: func(at target) error { return dial("udp", at.UDP, false) }},
	{row: networks, name: "vsock", may: true, do: func(target) error { return socket(unix.AF_VSOCK) }},
	{row: networks, name: "packets", may: true, do: func(target) error { return socket(unix.AF_ALG) }},
	{row: abstract, name: "abstract socket", do: func(at target) error { return dial("unix", at.Abstract, false) }},
	{row: named, name: "named socket", do: func(at target) error { return dial("unix", filepath.Join(at.Dir, "socket"), false) }},
	{row: lines, name: "command line", do: func(at target) error {
		line, err := os.ReadFile(of(at, "cmdline"))
		if err == nil && !bytes.Contains(line, []byte("600")) {
			err = errors.New("it is another process")
		}
		return err
	}},
	{row: internals, name: "io_uring", may: true, do: func(target) error {
		var params [120]byte
		return call(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0)
	}},
	{row: internals, name: "keys", may: true, do: func(target) error {
		_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, false)
		return err
	}},
	{row: remains, name: "a daemon", spare: true, do: func(target) error {
		c := exec.Command("sh", "-c", "setsid sleep 600 &")
		c.Stderr = os.Stderr // employ sees who has this open
		return errors.Join(c.Run(), errors.New("it ends with the spy, or employ waits in vain"))
	}},
	{row: large, name: "a large file", do: func(target) error {
		signal.Ignore(syscall.SIGXFSZ)
		return os.WriteFile("large", make([]byte, largeFile+1), 0o600)
	}},
	{row: forks, name: "many processes", do: func(target) error {
		for range manyProcesses {
			if err := exec.Command("sleep", "600").Start(); err != nil {
				return err
			}
		}
		return nil
	}},
}

func call(number, first, second, third uintptr) error {
	if _, _, err := unix.Syscall6(number, first, second, third, 0, 0, 0); err != 0 {
		return err
	}
	return nil
}

func read(path string) error {
	_, err := os.ReadFile(path)
	return err
}

// same gives a file the mode that it has.
func same(path string) error {
	info, err := os.Stat(path)
	if err == nil {
		err = os.Chmod(path, info.Mode())
	}
	return err
}

func dial(network, address string, multipath bool) error {
	d := net.Dialer{Timeout: 10 * time.Second}
	d.SetMultipathTCP(multipath)
	c, err := d.Dial(network, address)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.Write([]byte("?")); err != nil {
		return err
	}
	_, err = c.Read(make([]byte, 1)) // somebody answers
	return err
}

func socket(family int) error {
	fd, err := unix.Socket(family, unix.SOCK_STREAM, 0)
	if errors.Is(err, unix.ESOCKTNOSUPPORT) {
		fd, err = unix.Socket(family, unix.SOCK_SEQPACKET, 0)
	}
	if err == nil {
		err = unix.Close(fd)
	}
	return err
}

// shared makes memory and a queue of System V that every user may use.
func shared(t *testing.T) (memory, queue int) {
	memory, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unix.SysvShmCtl(memory, unix.IPC_RMID, nil) })
	id, _, failed := unix.Syscall(unix.SYS_MSGGET, unix.IPC_PRIVATE, 0o666, 0)
	if failed != 0 {
		t.Fatal(failed)
	}
	t.Cleanup(func() { _ = call(unix.SYS_MSGCTL, id, unix.IPC_RMID, 0) })
	return memory, int(id)
}
