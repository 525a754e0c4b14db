//go:build linux

package confine

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// started starts a shell script and returns what holds it and the first line that it prints.
func started(t *testing.T, p Policy, script string) (*exec.Cmd, *Control, string) {
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
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env, cmd.Stderr = []string{"PATH=" + os.Getenv("PATH")}, os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return cmd, c, strings.TrimSpace(line)
}

// TestExit: the status or the signal of a program is reported as it was.
func TestExit(t *testing.T) {
	for script, want := range map[string]Exit{
		"exit 0":                        {},
		"exit 137":                      {Status: 137}, // not taken for a signal
		"kill -KILL $$":                 {Signal: syscall.SIGKILL},
		"kill -SEGV $$":                 {Signal: syscall.SIGSEGV},
		"sleep 600 >&2 & exit 3":        {Status: 3}, // whatever it leaves behind
		"setsid sleep 600 >&2 & exit 4": {Status: 4},
	} {
		for _, unconfined := range []bool{false, true} {
			_, c, _ := started(t, Policy{Unconfined: unconfined}, script)
			got := <-c.Ended()
			if got.PID != c.PID() || got.PID == 0 || got.Status != want.Status || got.Signal != want.Signal || got.Peak < 100<<10 {
				t.Errorf("%s: got %+v, want %+v", script, got, want)
			}
		}
	}
}

// TestNothingIsLeft: what a program has started ends with it, also in a session of its own and when it
// stands still.
func TestNothingIsLeft(t *testing.T) {
	const script = "setsid sh -c 'echo $$; sleep 600 & kill -STOP $$' & kill -STOP $$"
	for how, end := range map[string]func(*exec.Cmd, *Control){
		"it is ended":          func(_ *exec.Cmd, c *Control) { c.End() },
		"the plugin is killed": func(_ *exec.Cmd, c *Control) { _ = syscall.Kill(c.PID(), syscall.SIGKILL) },
		"racflow is gone":      func(_ *exec.Cmd, c *Control) { _ = c.keep.socket.Close() }, // its end of the connection
	} {
		t.Run(how, func(t *testing.T) {
			cmd, c, line := started(t, Policy{}, script)
			left, err := strconv.Atoi(line)
			if err != nil {
				t.Fatal(err)
			}
			end(cmd, c)
			<-c.Ended()
			if err := syscall.Kill(left, 0); !errors.Is(err, syscall.ESRCH) {
				t.Errorf("process %d is left: %v", left, err)
			}
		})
	}
}

// TestStartFails: why a program does not start is what the system says of it.
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

// TestProxy: of the network a plugin reaches the engine's proxy, by the variables that say so.
func TestProxy(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "p") // the path of a socket is short, whatever TMPDIR is
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	proxy, err := net.Listen("unix", filepath.Join(dir, "proxy"))
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	go answer(proxy)
	curl, err := exec.LookPath("python3")
	if err != nil || !strings.HasPrefix(curl, "/usr/") {
		curl = "/usr/bin/python3"
	}
	if _, err := os.Stat(curl); err != nil {
		t.Skip("this needs the system's python3")
	}
	const script = `import os, socket; s = socket.create_connection(("127.0.0.1", int(os.environ["HTTPS_PROXY"].rsplit(":", 1)[1]))); s.send(b"?"); print(s.recv(1))`
	_, c, line := started(t, Policy{Network: true, Proxy: filepath.Join(dir, "proxy")}, "exec "+curl+" -c '"+script+"'")
	if e := <-c.Ended(); line != "b'!'" || e.Status != 0 {
		t.Errorf("got %q, %+v", line, e)
	}
}

// TestGaps: what a kernel lacks is said, and nothing else.
func TestGaps(t *testing.T) {
	full := Kernel{Linux: true, Landlock: 7, Namespaces: true, View: true, Filter: true}
	for name, c := range map[string]struct {
		kernel Kernel
		policy Policy
		want   []string // parts, in order
	}{
		"all of it":      {kernel: full},
		"as wished":      {kernel: Kernel{}, policy: Policy{Unconfined: true}},
		"another system": {kernel: Kernel{}, want: []string{"nothing is enforced"}},
		"no namespaces":  {kernel: Kernel{Linux: true, Landlock: 7, Filter: true}, want: []string{"sockets of your other programs"}},
		"nor proxy":      {kernel: Kernel{Linux: true, Landlock: 7, Filter: true}, policy: Policy{Network: true}, want: []string{"every host at one TCP port", "sockets of your other programs"}},
		"nor a server's network": {
			kernel: Kernel{Linux: true, Landlock: 10, Filter: true}, policy: Policy{Network: true, Local: []string{"localhost:8080", "[::1]:8080", "127.0.0.1:11434"}},
			want: []string{"every host at the TCP ports 8080, 11434 and that of the proxy's relay"},
		},
		"the latest":      {kernel: Kernel{Linux: true, Landlock: 10, Filter: true}},
		"no Landlock":     {kernel: Kernel{Linux: true, Namespaces: true, View: true, Filter: true}, want: []string{"change what it may only read", "signals", "memory"}},
		"an old Landlock": {kernel: Kernel{Linux: true, Landlock: 3, Namespaces: true, View: true, Filter: true}, want: []string{"signals"}},
		"nothing":         {kernel: Kernel{Linux: true}, want: []string{"your files", "network", "sockets of your", "abstract", "signals", "memory"}},
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
