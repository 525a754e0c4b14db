//go:build linux

package confine

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/internal/process/confine/cage"
)

// TestMain makes the test binary also the spy and the spy's launcher.
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

// target describes the spy's targets, and how it is launched.
type target struct {
	Dir        string // of the user
	TCP, UDP   string
	Abstract   string
	Victim     int // a process of the user
	Shared     int // memory of another process
	Queue      int // message queue of another process
	Own        string
	Unconfined bool
	Alone      bool     // without namespaces
	Hosts      []string // allowed by the proxy
	Local      []string // reachable in the plugin's network
	Ask        []string // addresses to try instead of all attacks
	Advice     []string // messages of the proxy
	Reached    []string
	Exit       Exit
}

// spy reports what it reaches.
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
	try("services", func() error { return dial("unix", filepath.Join(at.Own, "services", "s"), false) })
	try("allowed", func() error { return read(filepath.Join(at.Dir, "allowed", "file")) })
	try("writable", func() error { return os.WriteFile(filepath.Join(at.Dir, "writable", "x"), nil, 0o700) })
	try("a small segment", func() error {
		if at.Alone {
			return nil
		}
		return segment(56)
	})
	try("a program", func() error { return exec.Command("true").Run() })
	try("own modes", func() error { return os.Chmod("x", 0o700) })
	for _, a := range attacks {
		if !a.spare || !at.Unconfined {
			try(a.name, func() error { return a.do(at) })
		}
	}
	must(json.NewEncoder(os.Stdout).Encode(reached))
	os.Exit(7)
}

// employ starts the spy as this process's user, and reports what it reached.
func employ(raw string) {
	var at target
	must(json.Unmarshal([]byte(raw), &at))
	if at.Alone { // as on a system whose users may create no namespaces
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
		Read: []string{filepath.Join(at.Dir, "allowed")}, Write: []string{filepath.Join(at.Dir, "writable")}, Unconfined: at.Unconfined, Remove: []string{at.Own},
		Processes: manyProcesses, Disk: largeFile,
	}
	var mu sync.Mutex // guards at.Advice
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
	said, end, err := os.Pipe()
	must(err)
	cmd.Stdout, cmd.Stderr = out, end
	must(c.Start())
	must(end.Close())
	at.Exit = <-c.Ended()
	must(said.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err = io.Copy(os.Stderr, said) // until nobody has it open
	must(err)
	mu.Lock() // never unlocked
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

// answer answers every connection.
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

// own is what a plugin reaches in every kind of confinement.
var own = []string{"own home", "own temp", "own work", "own socket", "services", "allowed", "writable", "a small segment", "a program"}

// TestSpy launches a spy as this user and as a user who is not root, with and without namespaces. It
// also launches it unconfined, to show that its attacks work.
func TestSpy(t *testing.T) {
	kernel := Probe()
	if kernel.Landlock < cage.LandlockScope || !kernel.Filter {
		t.Skipf("this kernel cannot enforce all of it: %+v", kernel)
	}
	for _, user := range []string{"self", "plain"} {
		for _, how := range []string{"confined", "without namespaces", "unconfined"} {
			if how == "confined" && (!kernel.Namespaces || !kernel.View || !kernel.ReadOnly || !kernel.Proc) {
				continue
			}
			t.Run(user+" "+how, func(t *testing.T) {
				at := employed(t, user, target{Unconfined: how == "unconfined", Alone: how == "without namespaces"})
				for _, what := range own {
					if !slices.Contains(at.Reached, what) {
						t.Errorf("of its own it does not reach: %s", what)
					}
				}
				if modes := slices.Contains(at.Reached, "own modes"); modes == at.Alone {
					t.Errorf("it changes modes of its own: %v", modes)
				}
				if at.Exit.Status != 7 || at.Exit.Signal != 0 || at.Exit.PID == 0 {
					t.Errorf("it ended with %+v", at.Exit)
				}
				root := user == "self" && os.Getuid() == 0
				for _, a := range attacks {
					works := slices.Contains(at.Reached, a.name)
					switch {
					case at.Unconfined:
						if !works && !a.spare && !a.may && (root || !a.root) {
							t.Errorf("unconfined, it does not succeed: %s", a.name)
						}
					case works != a.succeeds(at.Alone, root, kernel.Landlock):
						t.Errorf("it succeeds: %s: %v", a.name, works)
					}
				}
			})
		}
	}
}

// TestSecurity: the claims of SECURITY.md about attacks agree with TestSpy.
func TestSecurity(t *testing.T) {
	raw, err := os.ReadFile("../../../../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(raw), "| A confined plugin can | with user namespaces | without |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var want []string
	for _, r := range rows {
		want = append(want, fmt.Sprintf("| %s | %s | %s |", r.can, r.with, r.without))
	}
	if table != strings.Join(want, "\n") {
		t.Errorf("the table is\n%s\nwant\n%s", table, strings.Join(want, "\n"))
	}
}

// employed launches the spy and returns its report.
func employed(t *testing.T, user string, at target) target {
	dir, err := os.MkdirTemp("/tmp", "racflow-spy") // only root can read the folder above t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self := filepath.Join(dir, "test") // any user may execute it
	binary, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(self, binary, 0o755)
	}
	for _, step := range []func() error{
		func() error { return err },
		func() error { return os.Mkdir(filepath.Join(dir, "own"), 0o777) },
		func() error { return os.Mkdir(filepath.Join(dir, "allowed"), 0o777) },
		func() error { return os.Mkdir(filepath.Join(dir, "writable"), 0o777) },
		func() error { return os.Mkdir(filepath.Join(dir, "hidden"), 0o755) },
		func() error { return os.Symlink("secret", filepath.Join(dir, "link")) },
		func() error { return os.WriteFile(filepath.Join(dir, "allowed", "file"), nil, 0o644) },
		func() error { return os.WriteFile(filepath.Join(dir, "secret"), nil, 0o644) },
		func() error { return os.Chmod(dir, 0o777) },
		func() error { return os.Chmod(filepath.Join(dir, "own"), 0o777) },
		func() error { return os.Chmod(filepath.Join(dir, "allowed"), 0o777) },
		func() error { return os.Chmod(filepath.Join(dir, "writable"), 0o777) },
		func() error {
			if user == "plain" && os.Getuid() == 0 {
				return os.Chown(filepath.Join(dir, "allowed", "file"), 65534, 65534)
			}
			return nil
		},
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
	at.Shared, at.Queue = shared(t)
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

// waitForProgram waits until a process has become a program: processes that change the user execute
// it last.
func waitForProgram(t *testing.T, pid int, name string) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); strings.TrimSpace(string(comm)) == name {
			return
		}
	}
	t.Fatalf("process %d did not become %s", pid, name)
}
