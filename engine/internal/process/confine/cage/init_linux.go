package cage

import (
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The thread that runs init functions is the process's first and lives as long as the process;
// PR_SET_PDEATHSIG of a child needs such a thread.
func init() {
	role := os.Getenv(Mark)
	if role == "" {
		return
	}
	// The plugin gets no file that racflow was started with.
	_ = unix.CloseRange(Pipe, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC) // an older kernel: Go sets that for what it opens
	unix.CloseOnExec(Pipe)
	if role == Outer {
		outer()
	} else {
		run(receive(unix.MSG_PEEK), true)
	}
	syscall.Exit(0) // os.Exit would wait a second in the race detector
}

// receive returns the next message of racflow.
func receive(flags int) *Spec {
	message := make([]byte, MaxMessage)
	n, _, err := unix.Recvfrom(Pipe, message, flags)
	s := &Spec{}
	if err != nil || json.Unmarshal(message[:n], s) != nil {
		syscall.Exit(1) // racflow has ended
	}
	return s
}

// send sends a message with control data to racflow.
func send(r Report, with []byte) {
	message, err := json.Marshal(r)
	if err == nil {
		err = unix.Sendmsg(Pipe, message, with, nil, unix.MSG_NOSIGNAL)
	}
	if err != nil && r.Ended == nil {
		syscall.Exit(1) // racflow has ended, and so do all processes that this process has started
	}
}

// outer starts init in namespaces and waits for it, or does its work.
func outer() {
	s := receive(unix.MSG_PEEK)
	if !s.Unconfined {
		if pid, ok := startInit(); ok {
			closed()
			detach()
			reap(pid)
			remove(s.Remove)
			return
		}
	}
	run(s, false)
	remove(s.Remove)
}

// namespaces are what a plugin gets if the kernel allows it: users, so that unprivileged users can
// create the others; processes; an empty network; SysV IPC; and mounts, for the view of files.
const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWNS

// useless is a file descriptor on which init reports that it can do nothing in its namespaces.
const useless = Pipe + 1

// startInit starts this program again as init. It returns false if the kernel does not allow it.
func startInit() (pid int, ok bool) {
	var says [2]int
	if err := unix.Pipe2(says[:], unix.O_CLOEXEC); err != nil {
		return 0, false
	}
	defer func() { _ = unix.Close(says[0]) }()
	// Without root, exec drops the capabilities of a namespace's creator, except ambient ones.
	pid, err := syscall.ForkExec("/proc/self/exe", []string{"racflow", "confine"}, &syscall.ProcAttr{
		Env:   []string{Mark + "=" + Init},
		Files: []uintptr{0, 1, 2, Pipe, uintptr(says[1])},
		Sys: &syscall.SysProcAttr{
			Setpgid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: namespaces,
			AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE, unix.CAP_SETPCAP},
			UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
		},
	})
	_ = unix.Close(says[1])
	if err != nil {
		return 0, false
	}
	if n, _ := unix.Read(says[0], make([]byte, 1)); n > 0 {
		reap(pid)
		return 0, false
	}
	return pid, true
}

func reap(pid int) {
	for {
		if _, err := unix.Wait4(pid, nil, 0, nil); err != unix.EINTR { //nolint:errorlint // as the system call returns it
			return
		}
	}
}

// grace is how long a plugin may outlive racflow.
const grace = 500 * time.Millisecond

// run confines and starts a program and waits until the program has ended. isInit: this is the first
// process of a namespace.
func run(s *Spec, isInit bool) {
	closed()
	if isInit {
		if err := raiseLoopback(); err != nil {
			_, _ = unix.Write(useless, []byte{0}) // some systems let users create namespaces but do nothing in them
			return
		}
		_ = unix.Close(useless)
	} else {
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // orphans of its processes become its children; needs Linux 3.4
	}
	receive(0) // the process that stays takes the message
	kernel := &Kernel{}
	child, doing, err := start(s, kernel, isInit)
	switch {
	case err != nil:
		f := &Failure{Doing: doing}
		if !errors.As(err, &f.Errno) || doing != starting {
			f.Text = err.Error()
		}
		send(Report{Failed: f}, nil)
		return
	case s.Probe:
		send(Report{Kernel: kernel}, nil)
		return
	}
	detach()
	if isInit {
		send(Report{Started: Translated}, unix.UnixCredentials(&unix.Ucred{Pid: int32(child), Uid: uint32(os.Getuid()), Gid: uint32(os.Getgid())}))
	} else {
		send(Report{Started: child}, nil)
	}
	p := processes{isInit: isInit}
	go func() {
		if n, err := unix.Read(Pipe, make([]byte, 1)); n == 0 || err != nil {
			time.Sleep(grace) // racflow has ended; the plugin notices that by its standard input and may end by itself
		}
		p.kill()
	}()
	ended := p.wait(child)
	if !isInit {
		p.end()
	}
	send(Report{Ended: ended}, nil)
}

// closed keeps other processes of this user out of this process, so that the plugin cannot use
// threads that are not restricted.
func closed() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) } // fails only for a wrong value

// detach closes the standard streams, which belong to the plugin.
func detach() {
	for fd := range 3 {
		_ = unix.Close(fd)
	}
	for range 3 { // takes the lowest free numbers
		_, _ = unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	}
}

func remove(folders []string) {
	for _, dir := range folders {
		_ = os.RemoveAll(dir)
	}
}

const starting = "start it"

// start confines the program and starts it from a thread with the restrictions of the program.
func start(s *Spec, kernel *Kernel, isInit bool) (pid int, doing string, err error) {
	var r reach
	var port int
	if !s.Unconfined {
		kernel.Namespaces, kernel.Landlock = isInit, landlockVersion()
		if r, port, doing, err = prepare(s, kernel); err != nil {
			return 0, doing, err
		}
	}
	done := make(chan struct{})
	go func() {
		defer func() { close(done); select {} }() // the plugin ends with this thread
		runtime.LockOSThread()
		if !s.Unconfined {
			if doing, err = restrict(s, kernel, r, port); err != nil {
				return
			}
		}
		if s.Probe {
			return
		}
		doing = starting
		// A group of its own, so that a plugin that signals its group does not hit this process.
		pid, err = syscall.ForkExec(s.Path, append([]string{s.Path}, s.Args...), &syscall.ProcAttr{
			Env: environment(s, port), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
		})
	}()
	<-done
	return pid, doing, err
}

// prepare makes the network and the file system that the program sees, which all threads share.
func prepare(s *Spec, kernel *Kernel) (r reach, port int, doing string, err error) {
	local := s.Local
	if !kernel.Namespaces {
		local = nil // the program reaches these hosts by itself
	}
	if s.Network {
		if port, err = furnish(local); err != nil {
			return r, 0, "listen for the plugin's connections", err
		}
	}
	r = reachable(s)
	if kernel.Namespaces {
		if err := enterView(r.follow(s.Work), r, kernel); err != nil {
			return r, 0, "make its view of the file system", err
		}
	}
	if err := os.Chdir(s.Work); err != nil {
		return r, 0, "enter its working folder", err
	}
	return r, port, "", nil
}

// environment returns the program's variables, with its own folders and the proxy's address set.
func environment(s *Spec, port int) []string {
	if s.Unconfined {
		return s.Env
	}
	own := []string{"HOME=" + s.Home, "TMPDIR=" + s.Temp, "PWD=" + s.Work}
	replaced := []string{"HOME", "TMPDIR", "PWD", "NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy"}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		replaced = append(replaced, name)
		if s.Network {
			own = append(own, name+"=http://127.0.0.1:"+strconv.Itoa(port))
		}
	}
	for _, variable := range s.Env {
		if name, _, _ := strings.Cut(variable, "="); !slices.Contains(replaced, name) {
			own = append(own, variable)
		}
	}
	return own
}

// processes are those that this process has to end.
type processes struct {
	isInit  bool
	reaping sync.Mutex // held so that no process id that kill has found is used again meanwhile
}

// wait reaps processes until the program has ended.
func (p *processes) wait(child int) *Ended {
	for {
		var status unix.WaitStatus
		if unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOWAIT, nil) != nil {
			continue // interrupted; the program stays a child until it is reaped
		}
		p.reaping.Lock()
		pid, _ := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		p.reaping.Unlock()
		switch {
		case pid == child && status.Signaled():
			return &Ended{Signal: status.Signal()}
		case pid == child && status.Exited():
			return &Ended{Status: status.ExitStatus()}
		}
	}
}

// kill kills all processes of the namespace, or the current children of this process. It returns
// false if the kernel does not list them.
func (p *processes) kill() bool {
	p.reaping.Lock()
	defer p.reaping.Unlock()
	if p.isInit {
		_ = unix.Kill(-1, unix.SIGKILL)
		return true
	}
	const threads = "/proc/self/task"
	entries, _ := os.ReadDir(threads)
	listed := false
	for _, e := range entries {
		raw, err := os.ReadFile(threads + "/" + e.Name() + "/children") // the thread may have ended; then it has no children
		listed = listed || err == nil
		for _, field := range strings.Fields(string(raw)) {
			if pid, err := strconv.Atoi(field); err == nil {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
	}
	return listed
}

// end ends all descendants. The orphans of a process become children of this one, so it only has to
// look for its children.
func (p *processes) end() {
	for p.kill() {
		for {
			pid, err := unix.Wait4(-1, nil, 0, nil)
			if err == unix.ECHILD { //nolint:errorlint // as the system call returns it
				return
			}
			if pid > 0 {
				break // its children have come to this process
			}
		}
	}
}
