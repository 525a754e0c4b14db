//go:build linux

package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	natsd "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// slow is how long a test waits for several processes that have much to do on a busy machine. Only
// one that fails waits so long.
const slow = 5 * time.Minute

// natsProgram is a NATS server in a process of its own, which can be killed, by its
// configuration file: racflow-nats FILE.
func natsProgram() {
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if len(os.Args) != 2 {
		fail(errors.New("usage: racflow-nats FILE"))
	}
	options, err := natsd.ProcessConfigFile(os.Args[1])
	fail(err)
	options.NoSigs = true
	s, err := natsd.NewServer(options)
	fail(err)
	s.ConfigureLogger()
	s.Start()
	s.WaitForShutdown()
}

// natsServers are NATS servers with JetStream on the loopback interface, each a process. They end with
// the test.
type natsServers struct {
	t   *testing.T
	all []*natsServer
}

// natsServer is one of them. It keeps its port and its folder when it is started again.
type natsServer struct {
	t            *testing.T
	dir, address string
	file         string   // in place of the one in dir
	env          []string // beside that of the test
	command      *exec.Cmd
}

// startServers starts so many servers, of which several are a cluster.
func startServers(t *testing.T, n int) *natsServers {
	t.Helper()
	c := &natsServers{t: t}
	routes := make([]string, n)
	for i := range n {
		routes[i] = freeAddress(t)
	}
	for i := range n {
		s := &natsServer{t: t, dir: t.TempDir(), address: freeAddress(t)}
		config := fmt.Sprintf("server_name: n%d\nlisten: %q\nlog_file: %q\n", i+1, s.address, filepath.Join(s.dir, "log"))
		if n > 1 {
			config += fmt.Sprintf("cluster {\n  name: test\n  listen: %q\n  no_advertise: true\n  routes: [\"nats://%s\"]\n}\n", routes[i], strings.Join(routes, `", "nats://`))
		}
		write(t, s.dir, "nats.conf", fmt.Sprintf("%sjetstream { store_dir: %q, max_file_store: 1GB }\n", config, filepath.Join(s.dir, "store")))
		s.start()
		c.all = append(c.all, s)
	}
	c.await()
	return c
}

// listens waits until the server does.
func (s *natsServer) listens() {
	s.t.Helper()
	if err := awaitListener(s.address, slow); err != nil {
		s.t.Fatal(err)
	}
}

// awaitListener waits until somebody listens at an address.
func awaitListener(address string, within time.Duration) error {
	for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp", address)
		if err == nil {
			return c.Close()
		}
		if time.Since(start) > within {
			return err
		}
	}
}

// freeAddress is one that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func (s *natsServer) start() {
	s.t.Helper()
	program := filepath.Join(s.dir, "racflow-nats")
	if _, err := os.Lstat(program); err != nil {
		if err := linkSelf(program); err != nil {
			s.t.Fatal(err)
		}
	}
	s.command = exec.Command(program, cmp.Or(s.file, filepath.Join(s.dir, "nats.conf")))
	s.command.Env = append(os.Environ(), s.env...)
	s.command.Stderr = os.Stderr
	s.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.command.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(s.kill)
}

// kill ends it with -9, if it has not ended.
func (s *natsServer) kill() {
	_ = s.command.Process.Kill()
	_ = s.command.Wait()
}

// url has the addresses of all servers.
func (c *natsServers) url() string {
	all := make([]string, len(c.all))
	for i, s := range c.all {
		all[i] = "nats://" + s.address
	}
	return strings.Join(all, ",")
}

// await waits until every server serves JetStream, and, in a cluster, follows its leader.
func (c *natsServers) await() {
	c.t.Helper()
	for _, s := range c.all {
		s.await(len(c.all))
	}
}

// await waits until the server serves, with streams that have a copy on each of so many servers.
func (s *natsServer) await(replicas int) {
	s.t.Helper()
	var err error
	for start := time.Now(); time.Since(start) < slow; time.Sleep(50 * time.Millisecond) {
		if err = s.serves(replicas); err == nil {
			return
		}
	}
	log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
	s.t.Fatalf("the server at %s does not serve: %v\n%s", s.address, err, log)
}

func (s *natsServer) serves(replicas int) error {
	conn, err := nats.Connect("nats://"+s.address, nats.Timeout(time.Second))
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(5*time.Second))
	if err != nil {
		return err
	}
	stream, err := js.CreateOrUpdateStream(s.t.Context(), jetstream.StreamConfig{Name: "ready", Subjects: []string{"ready"}, Replicas: replicas, MaxMsgs: 1})
	if err != nil {
		return err
	}
	if replicas == 1 {
		return nil
	}
	info, err := stream.Info(s.t.Context())
	if err != nil {
		return err
	}
	if info.Cluster == nil || info.Cluster.Leader == "" || len(info.Cluster.Replicas) != replicas-1 {
		return fmt.Errorf("the stream has no copy on each server: %+v", info.Cluster)
	}
	for _, r := range info.Cluster.Replicas {
		if r.Offline || !r.Current {
			return fmt.Errorf("server %s is behind", r.Name)
		}
	}
	return nil
}

// process is a racflow that runs beside the test. What it says goes into a file, so that nobody waits
// for its stages.
type process struct {
	*exec.Cmd
	t      *testing.T
	stderr string        // a file
	ended  chan struct{} // closed once it has
}

// begin starts a command of racflow, which ends with the test.
func begin(t *testing.T, c *exec.Cmd) *process {
	t.Helper()
	p := &process{Cmd: c, t: t, ended: make(chan struct{})}
	file, err := os.CreateTemp(t.TempDir(), "stderr")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	p.stderr, c.Stderr = file.Name(), file
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = c.Wait() // its exit code is compared
		close(p.ended)
	}()
	t.Cleanup(p.kill)
	return p
}

// kill ends it with -9, if it has not ended, also where it is stopped.
func (p *process) kill() {
	_ = p.Process.Kill()
	<-p.ended
}

// said is what it has written to standard error.
func (p *process) said() string {
	text, err := os.ReadFile(p.stderr)
	if err != nil {
		p.t.Error(err)
	}
	return string(text)
}

// wait waits for its end and returns its exit code.
func (p *process) wait(within time.Duration) int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(within):
		p.t.Fatalf("%v did not end within %v\n%s", p.Args[1:], within, p.said())
	}
	return p.ProcessState.ExitCode()
}

// good waits for its end, which has to be a good one, and returns what it said.
func (p *process) good(within time.Duration) string {
	p.t.Helper()
	if code := p.wait(within); code != 0 {
		p.t.Fatalf("%v: exit code %d\n%s", p.Args[1:], code, p.said())
	}
	return p.said()
}

// until waits until something is so, which has to be before its end.
func (p *process) until(what string, is func() bool) {
	p.t.Helper()
	for start, ended := time.Now(), false; !is(); time.Sleep(20 * time.Millisecond) {
		if ended || time.Since(start) > slow {
			p.t.Fatalf("%v has not come to this: %s\n%s", p.Args[1:], what, p.said())
		}
		select {
		case <-p.ended:
			ended = true // what it did last may not have been seen
		default:
		}
	}
}

// says waits until standard error has a text.
func (p *process) says(text string) {
	p.t.Helper()
	p.until("it says "+text, func() bool { return strings.Contains(p.said(), text) })
}

// startWorker starts a worker of the servers at these addresses, with a state folder of its own.
func startWorker(t *testing.T, urls string, args ...string) *process {
	t.Helper()
	return workerIn(t, t.TempDir(), urls, args...)
}

// workerIn starts a worker in a folder, in which it keeps its state.
func workerIn(t *testing.T, dir, urls string, args ...string) *process {
	t.Helper()
	c := racflow(t, dir, append([]string{"worker", "--on", urls, "--state", filepath.Join(dir, "state")}, args...)...)
	c.Env = append(os.Environ(), "CLUSTER_KEY=sk-cluster-hush", "RACFLOW_DUMPABLE=1", "XDG_CONFIG_HOME="+filepath.Join(dir, "config"))
	return begin(t, c)
}
