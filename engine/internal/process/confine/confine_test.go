//go:build linux

package confine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/racflow/racflow/engine/internal/process/confine/cage"
)

// TestMain makes the test binary the spy and the program that starts it, too.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 2 && os.Args[1] == "spy":
		spy(os.Args[2])
	case len(os.Args) > 2 && os.Args[1] == "employ":
		employ(os.Args[2])
	default:
		os.Exit(m.Run())
	}
}

// target is what the spy looks for, and how it is employed.
type target struct {
	Dir        string // the user's
	TCP, UDP   string
	Abstract   string
	Victim     int // a process of the user's
	Own        string
	Unconfined bool
	Alone      bool     // without namespaces
	Hosts      []string // that the proxy allows
	Local      []string // that are to be found in its network
	Ask        []string // addresses, in place of all else
	Advice     []string // what the proxy says
	Reached    []string
	Exit       Exit
}

// spy says what it reaches.
func spy(raw string) {
	var at target
	must(json.Unmarshal([]byte(raw), &at))
	if len(at.Ask) > 0 {
		must(json.NewEncoder(os.Stdout).Encode(answering(at.Ask)))
		os.Exit(7)
	}
	reached := []string{}
	try := func(what string, do func() error) {
		if do() == nil {
			reached = append(reached, what)
		}
	}
	dial := func(network, address string, multipath bool) func() error {
		return func() error {
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
	}
	read := func(path string) func() error {
		return func() error { _, err := os.ReadFile(path); return err }
	}
	try("own home", func() error { return os.WriteFile(filepath.Join(os.Getenv("HOME"), "x"), nil, 0o600) })
	try("own temp", func() error { return os.WriteFile(filepath.Join(os.TempDir(), "x"), nil, 0o600) })
	try("own work", func() error { return os.WriteFile("x", nil, 0o600) })
	try("own socket", func() error {
		path := filepath.Join(at.Own, "sockets", "s")
		l, err := net.Listen("unix", path)
		if err != nil {
			return err
		}
		defer l.Close()
		c, err := net.Dial("unix", path)
		if err == nil {
			err = c.Close()
		}
		return err
	})
	try("services", dial("unix", filepath.Join(at.Own, "services", "s"), false))
	try("allowed", read(filepath.Join(at.Dir, "allowed", "file")))
	try("a program", func() error { return exec.Command("true").Run() })
	try("read home", read(filepath.Join(at.Dir, "secret")))
	try("list home", func() error { _, err := os.ReadDir(at.Dir); return err })
	try("write home", func() error { return os.WriteFile(filepath.Join(at.Dir, "new"), nil, 0o600) })
	try("write allowed", func() error { return os.WriteFile(filepath.Join(at.Dir, "allowed", "new"), nil, 0o600) })
	try("environment", read(fmt.Sprintf("/proc/%d/environ", at.Victim)))
	try("memory", func() error {
		f, err := os.Open(fmt.Sprintf("/proc/%d/mem", at.Victim))
		if err == nil {
			err = f.Close()
		}
		return err
	})
	try("folder by process", func() error { _, err := os.ReadDir(fmt.Sprintf("/proc/%d/cwd", at.Victim)); return err })
	try("signal", func() error { return syscall.Kill(at.Victim, 0) })
	try("tcp", dial("tcp", at.TCP, false))
	try("mptcp", dial("tcp", at.TCP, true))
	try("udp", dial("udp", at.UDP, false))
	try("named socket", dial("unix", filepath.Join(at.Dir, "socket"), false))
	try("abstract socket", dial("unix", at.Abstract, false))
	try("vsock", func() error { return socket(unix.AF_VSOCK) })
	try("packets", func() error { return socket(unix.AF_ALG) })
	try("io_uring", func() error {
		var params [120]byte
		_, _, err := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0)
		if err != 0 {
			return err
		}
		return nil
	})
	must(json.NewEncoder(os.Stdout).Encode(reached))
	os.Exit(7)
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

// employ starts the spy as whichever user this process is, and says what it reached.
func employ(raw string) {
	var at target
	must(json.Unmarshal([]byte(raw), &at))
	if at.Alone { // as on a system whose users may make no namespaces
		must(os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0))
	}
	in := func(name string) string { return filepath.Join(at.Own, name) }
	for _, dir := range []string{"home", "work", "tmp", "sockets", "services"} {
		must(os.MkdirAll(in(dir), 0o700))
	}
	services, err := net.Listen("unix", in("services/s"))
	must(err)
	go answer(services)
	self, err := os.Executable()
	must(err)
	policy := Policy{
		Home: in("home"), Work: in("work"), Temp: in("tmp"), Sockets: in("sockets"), Services: in("services"),
		Read: []string{filepath.Join(at.Dir, "allowed")}, Unconfined: at.Unconfined, Remove: []string{at.Own},
	}
	var mu sync.Mutex // of at.Advice
	if len(at.Hosts) > 0 {
		p, err := NewProxy("mine", at.Hosts, func(advice string) {
			mu.Lock()
			defer mu.Unlock()
			at.Advice = append(at.Advice, advice)
		})
		must(err)
		policy.Network, policy.Proxy, policy.Local = true, p, at.Local
	}
	cmd, c, err := Command(self, policy, self, "spy", raw)
	must(err)
	cmd.Dir, cmd.Env = in("work"), []string{"PATH=" + os.Getenv("PATH"), "HOME=" + in("home"), "TMPDIR=" + in("tmp")}
	out, err := os.CreateTemp(in("tmp"), "")
	must(err)
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	must(c.Start())
	at.Exit = <-c.Ended()
	mu.Lock() // for good
	_, err = out.Seek(0, 0)
	must(err)
	must(json.NewDecoder(out).Decode(&at.Reached))
	if _, err := os.Stat(at.Own); !os.IsNotExist(err) {
		panic("its folders are left")
	}
	must(json.NewEncoder(os.Stdout).Encode(at))
	os.Exit(0)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// answer answers whoever connects.
func answer(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			if _, err := c.Read(make([]byte, 1)); err == nil {
				_, _ = c.Write([]byte("!"))
			}
		}()
	}
}

// own is what a plugin reaches however it is confined.
var own = []string{"own home", "own temp", "own work", "own socket", "services", "allowed", "a program"}

// TestSpy employs a spy as this user and as one who is not root, with and without namespaces, and
// unconfined to show that it can spy.
func TestSpy(t *testing.T) {
	kernel := Probe()
	if kernel.Landlock < cage.LandlockScope || !kernel.Filter {
		t.Skipf("this kernel cannot enforce all of it: %+v", kernel)
	}
	for _, user := range []string{"self", "plain"} {
		for name, c := range map[string]struct {
			unconfined, alone bool
			beyond            []string // what it reaches beside its own; nil: everything
		}{
			"confined":           {beyond: []string{}},
			"without namespaces": {alone: true, beyond: []string{"named socket"}},
			"unconfined":         {unconfined: true},
		} {
			t.Run(user+" "+name, func(t *testing.T) {
				at := employed(t, user, target{Unconfined: c.unconfined, Alone: c.alone})
				beyond := slices.DeleteFunc(slices.Clone(at.Reached), func(what string) bool { return slices.Contains(own, what) })
				if len(at.Reached)-len(beyond) != len(own) {
					t.Errorf("of its own it reaches only %q", at.Reached)
				}
				if at.Exit.Status != 7 || at.Exit.Signal != 0 || at.Exit.PID == 0 || at.Exit.Peak < 1<<20 {
					t.Errorf("it ended with %+v", at.Exit)
				}
				if c.beyond != nil {
					if !kernel.Namespaces || !kernel.View {
						c.beyond = []string{"named socket"}
					}
					if !slices.Equal(beyond, c.beyond) {
						t.Errorf("it reaches %q, want %q", beyond, c.beyond)
					}
					return
				}
				for _, what := range []string{"read home", "list home", "write home", "write allowed", "environment", "memory", "folder by process", "signal",
					"tcp", "udp", "named socket", "abstract socket"} {
					if !slices.Contains(beyond, what) {
						t.Errorf("unconfined, it does not reach: %s", what)
					}
				}
			})
		}
	}
}

// employed runs the spy and returns what it says.
func employed(t *testing.T, user string, at target) target {
	dir, err := os.MkdirTemp("/tmp", "racflow-spy") // t.TempDir has a folder above it that is root's alone
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self := filepath.Join(dir, "test") // that any user may execute
	binary, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(self, binary, 0o755)
	}
	for _, step := range []func() error{
		func() error { return err },
		func() error { return os.Mkdir(filepath.Join(dir, "own"), 0o777) },
		func() error { return os.Mkdir(filepath.Join(dir, "allowed"), 0o777) },
		func() error { return os.WriteFile(filepath.Join(dir, "allowed", "file"), nil, 0o644) },
		func() error { return os.WriteFile(filepath.Join(dir, "secret"), nil, 0o644) },
		func() error { return os.Chmod(dir, 0o777) },
		func() error { return os.Chmod(filepath.Join(dir, "own"), 0o777) },
		func() error { return os.Chmod(filepath.Join(dir, "allowed"), 0o777) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	at.Dir, at.Own, at.Abstract = dir, filepath.Join(dir, "own", "of-plugin"), "@"+filepath.Base(dir)
	listen := func(network, address string) net.Listener {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		go answer(l)
		return l
	}
	at.TCP = listen("tcp4", "127.0.0.1:0").Addr().String()
	listen("unix", at.Abstract)
	listen("unix", filepath.Join(dir, "socket"))
	if err := os.Chmod(filepath.Join(dir, "socket"), 0o777); err != nil {
		t.Fatal(err)
	}
	packets, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = packets.Close() })
	at.UDP = packets.LocalAddr().String()
	go func() {
		for buffer := make([]byte, 1); ; {
			_, from, err := packets.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = packets.WriteTo(buffer, from)
		}
	}()
	as := func(args ...string) *exec.Cmd {
		if at.Alone {
			args = append([]string{"unshare", "--user", "--map-root-user"}, args...)
		}
		if user == "plain" && os.Getuid() == 0 {
			args = append([]string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}, args...)
		}
		if _, err := exec.LookPath(args[0]); err != nil {
			t.Skipf("this needs the program %s", args[0])
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		t.Cleanup(cancel)
		c := exec.CommandContext(ctx, args[0], args[1:]...)
		c.Dir = dir
		return c
	}
	victim := as("sleep", "600")
	victim.Env = []string{"PATH=" + os.Getenv("PATH"), "KEY=value"}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = victim.Process.Kill(); _ = victim.Wait() })
	waitForProgram(t, victim.Process.Pid, "sleep")
	at.Victim = victim.Process.Pid
	raw, err := json.Marshal(at)
	if err != nil {
		t.Fatal(err)
	}
	c := as(self, "employ", string(raw))
	var said strings.Builder
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	if err := json.Unmarshal(out, &at); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return at
}

// waitForProgram waits until a process has become a program: those that change the user become it in the end.
func waitForProgram(t *testing.T, pid int, name string) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); strings.TrimSpace(string(comm)) == name {
			return
		}
	}
	t.Fatalf("process %d did not become %s", pid, name)
}
