//go:build linux

package confine

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
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

// started starts a shell script. It returns the script's Control, the first line of its output, and
// the rest.
func started(t *testing.T, p Policy, script string) (*Control, string, *os.File) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	p.Home, p.Work, p.Temp = dir, dir, dir
	cmd, c, err := Command(self, p, "/bin/sh", "-c", script)
	if err != nil {
		t.Fatal(err)
	}
	out, end, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = out.Close() })
	cmd.Env, cmd.Stdout, cmd.Stderr = []string{"PATH=" + os.Getenv("PATH")}, end, os.Stderr
	err = c.Start()
	_ = end.Close()
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return c, strings.TrimSpace(line), out
}

// TestExit: the status or the signal of a program is reported unchanged.
func TestExit(t *testing.T) {
	for script, want := range map[string]Exit{
		"exit 0":                        {},
		"exit 137":                      {Status: 137}, // not mistaken for a signal
		"kill -KILL $$":                 {Signal: syscall.SIGKILL},
		"kill -SEGV $$":                 {Signal: syscall.SIGSEGV},
		"sleep 600 >&2 & exit 3":        {Status: 3}, // whatever the script leaves behind
		"setsid sleep 600 >&2 & exit 4": {Status: 4},
	} {
		for _, unconfined := range []bool{false, true} {
			c, _, _ := started(t, Policy{Unconfined: unconfined}, script)
			got := <-c.Ended()
			if got.PID != c.PID() || got.PID == 0 || got.Status != want.Status || got.Signal != want.Signal {
				t.Errorf("%s: got %+v, want %+v", script, got, want)
			}
		}
	}
}

// TestNothingIsLeft: all processes that a program has started end with it, even in a session of their
// own, and even if they are stopped.
func TestNothingIsLeft(t *testing.T) {
	const script = "setsid sh -c 'sleep 600 & echo started; kill -STOP $$' & kill -STOP $$"
	for how, end := range map[string]func(*Control){
		"it is ended":          func(c *Control) { c.End() },
		"the plugin is killed": func(c *Control) { _ = syscall.Kill(c.PID(), syscall.SIGKILL) },
		"racflow is gone":      func(c *Control) { _ = c.keep.conn.Close() }, // racflow's end of the connection
	} {
		for _, unconfined := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, unconfined=%v", how, unconfined), func(t *testing.T) {
				c, _, out := started(t, Policy{Unconfined: unconfined}, script)
				end(c)
				<-c.Ended()
				_ = out.SetReadDeadline(time.Now().Add(time.Minute))
				if _, err := io.ReadAll(out); err != nil {
					t.Errorf("a process has its output still open: %v", err)
				}
			})
		}
	}
}

// TestUselessNamespaces: some systems let users create a namespace but do nothing in it. There, a
// program starts without namespaces.
func TestUselessNamespaces(t *testing.T) {
	started := make(chan *Control)
	go func() { // on a thread that ends with the goroutine
		runtime.LockOSThread()
		defer close(started)
		filter := []unix.SockFilter{ // refuses to raise an interface
			{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
			{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_IOCTL, Jf: 3},
			{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 24},
			{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SIOCSIFFLAGS, Jf: 1},
			{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
			{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		}
		program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
		err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		if err == nil {
			err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
		}
		dir := t.TempDir()
		self, noSelf := os.Executable()
		cmd, c, noCommand := Command(self, Policy{Home: dir, Work: dir, Temp: dir}, "/bin/sh", "-c", "test $$ != 1 && test $PPID != 1 && exit 5")
		if err = errors.Join(err, noSelf, noCommand); err == nil {
			cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
			err = c.Start()
		}
		if err != nil {
			t.Error(err)
			return
		}
		started <- c
	}()
	if c := <-started; c != nil {
		if e := <-c.Ended(); e.Status != 5 {
			t.Errorf("it ended with %+v", e)
		}
	}
}

// TestStartFails: the error says why a program does not start, in the system's words.
func TestStartFails(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"plain": "", "foreign": "\x00\x01"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), map[string]os.FileMode{"plain": 0o644, "foreign": 0o755}[name]); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{
		filepath.Join(dir, "none"): syscall.ENOENT, filepath.Join(dir, "plain"): syscall.EACCES, filepath.Join(dir, "foreign"): syscall.ENOEXEC,
	} {
		for _, unconfined := range []bool{false, true} {
			_, c, err := Command(self, Policy{Home: dir, Work: dir, Temp: dir, Unconfined: unconfined}, path)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Start(); !errors.Is(err, want) {
				t.Errorf("%s: got %v, want %v", path, err, want)
			}
		}
	}
	_, c, err := Command(self, Policy{Home: dir, Work: filepath.Join(dir, "none"), Temp: dir}, "/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err == nil || !strings.Contains(err.Error(), "could not be confined") {
		t.Errorf("without its folder: %v", err)
	}
}

// TestProxy: a plugin reaches only the engine's proxy, through the proxy variables.
func TestProxy(t *testing.T) {
	proxy, err := NewProxy("mine", []string{"localhost:1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	python, err := exec.LookPath("python3")
	if err != nil || !strings.HasPrefix(python, "/usr/") {
		python = "/usr/bin/python3"
	}
	if _, err := os.Stat(python); err != nil {
		t.Skip("this needs the system's python3")
	}
	const script = `import os, socket; s = socket.create_connection(("127.0.0.1", int(os.environ["HTTPS_PROXY"].rsplit(":", 1)[1]))); s.send(b"GET / HTTP/1.0\r\n\r\n"); print(s.recv(99))`
	c, line, _ := started(t, Policy{Network: true, Proxy: proxy}, "exec "+python+" -c '"+script+"'")
	if e := <-c.Ended(); !strings.Contains(line, "400 Bad Request") || e.Status != 0 {
		t.Errorf("got %q, %+v", line, e)
	}
}

// TestGaps: Gaps reports exactly what a kernel lacks.
func TestGaps(t *testing.T) {
	const paths, sockets, lines = "whether a path exists", "sockets of your other programs", "command lines"
	full := cage.Kernel{Landlock: 7, Namespaces: true, View: true, ReadOnly: true, Proc: true, Filter: true}
	in := func(change func(*cage.Kernel)) Kernel {
		k := full
		change(&k)
		return Kernel{Linux: true, Kernel: k}
	}
	place := func(version int, filter bool) Kernel {
		return Kernel{Linux: true, Kernel: cage.Kernel{Landlock: version, Filter: filter}}
	}
	for name, c := range map[string]struct {
		kernel Kernel
		policy Policy
		want   []string // parts, in order
	}{
		"all of it":      {kernel: in(func(*cage.Kernel) {})},
		"as wished":      {policy: Policy{Unconfined: true}},
		"another system": {want: []string{"nothing is enforced"}},
		"no namespaces":  {kernel: place(7, true), want: []string{paths, sockets, lines}},
		"nor proxy":      {kernel: place(7, true), policy: Policy{Network: true}, want: []string{paths, "listen", "every host at one TCP port", sockets, lines}},
		"nor a server's network": {
			kernel: place(10, true), policy: Policy{Network: true, Local: []string{"localhost:8080", "[::1]:8080", "127.0.0.1:11434"}},
			want: []string{paths, "listen", "every host at the TCP ports 8080, 11434 and that of the proxy", lines},
		},
		"nor an old Landlock's":      {kernel: place(3, true), policy: Policy{Network: true}, want: []string{paths, "listen", "every host over TCP", sockets, "abstract", "signals", lines}},
		"the first Landlock":         {kernel: place(1, true), want: []string{"empty files", paths, sockets, "abstract", "signals", lines}},
		"the latest":                 {kernel: place(10, true), want: []string{paths, lines}},
		"no filter":                  {kernel: place(10, false), want: []string{"modes, owners", "watch", paths, "programs in folders", "network", "limits and priorities", "shared memory", "keys", lines}},
		"no Landlock":                {kernel: in(func(k *cage.Kernel) { k.Landlock = 0 })},
		"an old kernel":              {kernel: in(func(k *cage.Kernel) { k.Landlock, k.ReadOnly = 0, false }), want: []string{"change what it may only read"}},
		"an old Landlock":            {kernel: in(func(k *cage.Kernel) { k.Landlock = 1 })},
		"no filter, with namespaces": {kernel: in(func(k *cage.Kernel) { k.Filter = false }), want: []string{"programs in folders", "keys"}},
		"a container":                {kernel: in(func(k *cage.Kernel) { k.Proc = false }), want: []string{lines}},
		"no view":                    {kernel: in(func(k *cage.Kernel) { k.View, k.ReadOnly, k.Proc = false, false, false }), want: []string{paths, sockets, lines}},
		"nothing": {kernel: place(0, false), want: []string{
			"your files", "programs in folders", "network", sockets, "abstract", "signals", "memory", "limits and priorities", "shared memory", "keys", lines,
		}},
	} {
		got := c.kernel.Gaps(c.policy)
		if len(got) != len(c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
			continue
		}
		for i, part := range c.want {
			if !strings.Contains(got[i], part) {
				t.Errorf("%s: got %q, want %q", name, got[i], part)
			}
		}
	}
}
