//go:build linux

package confine

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/racflow/racflow/engine/internal/process/confine/cage"
)

// Limits of the spy.
const (
	manyProcesses = 150
	largeFile     = 1 << 20
)

// row is a line of the table in SECURITY.md. Text that begins with "no" means that the attack fails.
type row struct{ can, with, without string }

var (
	files     = row{"read, list or change your files", "no", "no"}
	paths     = row{"tell whether a path exists, and see the size, times and attributes of its file", "no", "yes"}
	watches   = row{"learn names of your files by watching folders", "no", "no"}
	changes   = row{"change modes, times or attributes of what it reads", "no", "no"}
	setIDs    = row{"make programs, in folders of `write`, that run with your rights whoever starts them", "no", "no"}
	memories  = row{"read the memory or environment of other processes, or attach to them", "no", "no"}
	signals   = row{"send signals to other processes", "no", "no"}
	limits    = row{"change limits, priority or processors of other processes", "no", "no"}
	sysv      = row{"use System V memory or queues of other programs", "no", "no"}
	networks  = row{"use a network that it was not given", "no", "no"}
	abstract  = row{"connect to abstract sockets", "no", "no"}
	named     = row{"connect to named sockets", "no", "yes, before Landlock 9"}
	lines     = row{"see command lines of other processes", "no", "yes"}
	internals = row{"use io_uring, keys, BPF or performance counters", "no", "no"}
	nested    = row{"make user namespaces of its own", "no", "no"}
	remains   = row{"leave processes behind", "no", "no"}
	hidden    = row{"hold memory above its bound in memfd files or System V memory", "no", "no"}
	buffers   = row{"hold memory above its bound in buffers of pipes and sockets, or in shared memory that it no longer maps", "yes", "yes"}
	large     = row{"write a file above its bound", "no", "no"}
	forks     = row{"start processes above its bound", "no; root: until racflow looks", "until racflow looks"}
	rows      = []row{
		files, paths, watches, changes, setIDs, memories, signals, limits, sysv, networks, abstract, named, lines, internals, nested,
		remains, hidden, buffers, large, forks,
	}
)

// attack is something that the spy tries.
type attack struct {
	row
	name  string
	root  bool // without confinement, only root can do it
	may   bool // without confinement, its success depends on the machine
	spare bool // must not be tried without confinement, or racflow prevents it there, too
	do    func(at target) error
}

// succeeds reports whether the attack succeeds according to the table.
func (a attack) succeeds(alone, root bool, landlock int) bool {
	if alone {
		return !strings.HasPrefix(a.without, "no") && (landlock < cage.LandlockUnix || !strings.Contains(a.without, "Landlock"))
	}
	return !strings.HasPrefix(a.with, "no") || root && strings.Contains(a.with, "root")
}

// of returns the path of a file of the victim in /proc.
func of(at target, name string) string { return fmt.Sprintf("/proc/%d/%s", at.Victim, name) }

func allowed(at target) string { return filepath.Join(at.Dir, "allowed", "file") }

// attacks are tried in this order: the last one leaves no room for others.
var attacks = []attack{
	{row: files, name: "read home", do: func(at target) error { return read(filepath.Join(at.Dir, "secret")) }},
	{row: files, name: "list home", do: func(at target) error { _, err := os.ReadDir(at.Dir); return err }},
	{row: files, name: "write home", do: func(at target) error { return os.WriteFile(filepath.Join(at.Dir, "new"), nil, 0o600) }},
	{row: files, name: "write allowed", do: func(at target) error { return os.WriteFile(filepath.Join(at.Dir, "allowed", "new"), nil, 0o600) }},
	{row: files, name: "folder by process", do: func(at target) error { _, err := os.ReadDir(of(at, "cwd")); return err }},
	{row: paths, name: "stat", do: func(at target) error { _, err := os.Stat(filepath.Join(at.Dir, "secret")); return err }},
	{row: paths, name: "access", do: func(at target) error { return unix.Access(filepath.Join(at.Dir, "secret"), unix.F_OK) }},
	{row: paths, name: "link", do: func(at target) error { _, err := os.Readlink(filepath.Join(at.Dir, "link")); return err }},
	{row: paths, name: "attributes of home", do: func(at target) error { _, err := unix.Listxattr(filepath.Join(at.Dir, "secret"), nil); return err }},
	{row: paths, name: "enter a folder", do: func(at target) error {
		err := os.Chdir(filepath.Join(at.Dir, "hidden"))
		return errors.Join(err, os.Chdir(filepath.Join(at.Own, "work")))
	}},
	{row: watches, name: "inotify", do: func(at target) error {
		fd, err := unix.InotifyInit1(0)
		if err == nil {
			_, err = unix.InotifyAddWatch(fd, filepath.Join(at.Dir, "hidden"), unix.IN_OPEN)
		}
		return err
	}},
	{row: watches, name: "older inotify", may: true, do: func(at target) error {
		fd, err := older(253)
		if err == nil {
			_, err = unix.InotifyAddWatch(fd, filepath.Join(at.Dir, "hidden"), unix.IN_OPEN)
		}
		return err
	}},
	{row: watches, name: "fanotify", may: true, do: func(at target) error {
		fd, err := unix.FanotifyInit(unix.FAN_REPORT_FID, 0)
		if err == nil {
			err = unix.FanotifyMark(fd, unix.FAN_MARK_ADD, unix.FAN_OPEN, unix.AT_FDCWD, filepath.Join(at.Dir, "hidden"))
		}
		return err
	}},
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
		return unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, 0x40) // the flag nodump
	}},
	{row: changes, name: "version", may: true, do: func(at target) error {
		f, err := os.Open(allowed(at))
		if err != nil {
			return err
		}
		defer f.Close()
		return unix.IoctlSetPointerInt(int(f.Fd()), 0x40087602, 7) // FS_IOC_SETVERSION
	}},
	{row: changes, name: "a system file", root: true, do: func(target) error { return same("/usr/bin/env") }},
	{row: changes, name: "a device", root: true, do: func(target) error { return same("/dev/null") }},
	{row: setIDs, name: "set-id by chmod", do: func(at target) error {
		return setID(at, false, func(path string) error { return unix.Fchmodat(unix.AT_FDCWD, path, 0o4755, 0) })
	}},
	{row: setIDs, name: "set-id by fchmod", do: func(at target) error {
		return setID(at, false, func(path string) error {
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			defer f.Close()
			return unix.Fchmod(int(f.Fd()), 0o2755)
		})
	}},
	{row: setIDs, name: "set-id by fchmodat2", may: true, do: func(at target) error {
		return setID(at, false, func(path string) error { return unix.Fchmodat(unix.AT_FDCWD, path, 0o6755, unix.AT_SYMLINK_NOFOLLOW) })
	}},
	{row: setIDs, name: "set-id by older chmod", may: true, do: func(at target) error {
		return setID(at, false, func(path string) error { _, err := older(90, pointer(path), 0o4755); return err })
	}},
	{row: setIDs, name: "set-id by openat", do: func(at target) error {
		return setID(at, true, func(path string) error { _, err := unix.Open(path, unix.O_CREAT|unix.O_WRONLY, 0o4755); return err })
	}},
	{row: setIDs, name: "set-id without a name", may: true, do: func(at target) error {
		fd, err := unix.Open(filepath.Join(at.Dir, "writable"), unix.O_TMPFILE|unix.O_RDWR, 0o4755)
		if err != nil {
			return err
		}
		return setID(at, true, func(path string) error {
			return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
		})
	}},
	{row: setIDs, name: "set-id by openat2", may: true, do: func(at target) error {
		return setID(at, true, func(path string) error {
			_, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_CREAT | unix.O_WRONLY, Mode: 0o4755})
			return err
		})
	}},
	{row: setIDs, name: "set-id by older open", may: true, do: func(at target) error {
		return setID(at, true, func(path string) error { _, err := older(2, pointer(path), unix.O_CREAT, 0o4755); return err })
	}},
	{row: setIDs, name: "set-id by creat", may: true, do: func(at target) error {
		return setID(at, true, func(path string) error { _, err := older(85, pointer(path), 0o4755); return err })
	}},
	{row: setIDs, name: "set-id by mknodat", do: func(at target) error {
		return setID(at, true, func(path string) error { return unix.Mknodat(unix.AT_FDCWD, path, unix.S_IFREG|0o4755, 0) })
	}},
	{row: setIDs, name: "set-id by mknod", may: true, do: func(at target) error {
		return setID(at, true, func(path string) error { _, err := older(133, pointer(path), unix.S_IFREG|0o4755); return err })
	}},
	{row: setIDs, name: "capabilities of a file", root: true, do: func(at target) error {
		path := filepath.Join(at.Dir, "writable", "program")
		return errors.Join(os.WriteFile(path, nil, 0o700), unix.Setxattr(path, "security.capability", []byte("\x01\x00\x00\x02\x01"+strings.Repeat("\x00", 15)), 0))
	}},
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
	{row: nested, name: "clone", may: true, do: func(target) error { return fork(unix.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD), 0) }},
	{row: nested, name: "clone3", may: true, do: func(target) error {
		arguments := [8]uint64{0: unix.CLONE_NEWUSER, 4: uint64(unix.SIGCHLD)}
		return fork(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&arguments)), unsafe.Sizeof(arguments))
	}},
	{row: nested, name: "unshare", may: true, do: func(target) error { return exec.Command("unshare", "--user", "true").Run() }},
	{row: hidden, name: "memfd", do: func(target) error { _, err := unix.MemfdCreate("x", 0); return err }},
	{row: hidden, name: "secret memory", may: true, do: func(target) error { return call(unix.SYS_MEMFD_SECRET, 0, 0, 0) }},
	{row: hidden, name: "own memory of System V", do: func(target) error { return segment(1 << 20) }},
	{row: hidden, name: "much memory of System V", may: true, do: func(target) error { return segment(1 << 33) }},
	{row: hidden, name: "own queue of System V", do: func(target) error {
		id, _, err := unix.Syscall(unix.SYS_MSGGET, unix.IPC_PRIVATE, 0o600, 0)
		if err != 0 {
			return err
		}
		return call(unix.SYS_MSGCTL, id, unix.IPC_RMID, 0)
	}},
	{row: hidden, name: "own semaphores of System V", do: func(target) error {
		id, _, err := unix.Syscall(unix.SYS_SEMGET, unix.IPC_PRIVATE, 1000, 0o600)
		if err != 0 {
			return err
		}
		return call(unix.SYS_SEMCTL, id, 0, unix.IPC_RMID)
	}},
	{row: buffers, name: "shared memory without pages", do: func(target) error {
		memory, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
		if err != nil {
			return err
		}
		memory[0] = 1
		if err := unix.Madvise(memory, unix.MADV_DONTNEED); err != nil || memory[0] != 1 {
			return fmt.Errorf("it has lost its content: %w", err)
		}
		return nil
	}},
	{row: buffers, name: "a full pipe", do: func(target) error {
		r, w, err := os.Pipe()
		if err == nil {
			_, err = w.Write(make([]byte, 1<<12))
		}
		return errors.Join(err, r.Close(), w.Close())
	}},
	{row: remains, name: "a daemon", spare: true, do: func(target) error {
		c := exec.Command("sh", "-c", "setsid sleep 600 &")
		c.Stderr = os.Stderr // employ sees which processes have this open
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

// older makes a system call that only amd64 has.
func older(number uintptr, arguments ...uintptr) (int, error) {
	if runtime.GOARCH != "amd64" {
		return -1, unix.ENOSYS
	}
	arguments = append(arguments, 0, 0, 0)
	result, _, err := unix.Syscall(number, arguments[0], arguments[1], arguments[2])
	if err != 0 {
		return -1, err
	}
	return int(result), nil
}

func pointer(path string) uintptr { return uintptr(unsafe.Pointer(&append([]byte(path), 0)[0])) }

// fork makes a process by a system call, and waits for its end.
func fork(number, first, second uintptr) error {
	pid, _, err := unix.RawSyscall6(number, first, second, 0, 0, 0, 0)
	switch {
	case err != 0:
		return err
	case pid == 0: // the child
		_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	_, failed := unix.Wait4(int(pid), nil, 0, nil)
	return failed
}

// segment makes System V memory of a given size.
func segment(size int) error {
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, size, 0o600)
	if err == nil {
		_, err = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
	}
	return err
}

// setID reports whether a program in a writable folder has become one that changes the user or group.
// fresh: do creates the program; otherwise do changes an existing one.
func setID(at target, fresh bool, do func(path string) error) error {
	path := filepath.Join(at.Dir, "writable", "program")
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	if !fresh {
		if err := os.WriteFile(path, nil, 0o700); err != nil {
			return err
		}
	}
	if err := do(path); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err == nil && info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) == 0 {
		err = errors.New("it is an ordinary program")
	}
	return err
}

func read(path string) error {
	_, err := os.ReadFile(path)
	return err
}

// same gives a file the mode that it already has.
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

// shared makes System V memory and a System V queue that every user may use.
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
