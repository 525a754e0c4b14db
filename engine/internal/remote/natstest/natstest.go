package natstest

import (
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Servers are NATS servers in the test's process, on 127.0.0.1, until the test ends.
type Servers struct {
	t       testing.TB
	options []*server.Options
	servers []*server.Server // nil: stopped
}

// ready limits how long servers take until JetStream works; a cluster of three on a busy machine needs most of a minute.
const ready = 2 * time.Minute

// Start starts one server, or a cluster of three, with JetStream, and waits until it works. change
// may set more options of a server (accounts, TLS, limits) before the start.
func Start(t testing.TB, n int, change ...func(i int, o *server.Options)) *Servers {
	t.Helper()
	s := &Servers{t: t, servers: make([]*server.Server, n)}
	ports := freePorts(t, 2*n)
	var routes []*url.URL
	for i := range n {
		routes = append(routes, &url.URL{Scheme: "nats", Host: fmt.Sprintf("127.0.0.1:%d", ports[n+i])})
	}
	for i := range n {
		o := &server.Options{ServerName: fmt.Sprintf("s%d", i), Host: "127.0.0.1", Port: ports[i], JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true,
			JetStreamMaxMemory: 1 << 30, JetStreamMaxStore: 8 << 30}
		if n > 1 {
			o.Cluster = server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: ports[n+i]}
			o.Routes = routes
		}
		for _, f := range change {
			f(i, o)
		}
		s.options = append(s.options, o)
	}
	for i := range n {
		s.start(i)
	}
	t.Cleanup(func() {
		for i := range n {
			s.Stop(i)
		}
	})
	s.Wait()
	return s
}

// URL lists all servers in the form of --on.
func (s *Servers) URL() string {
	hosts := make([]string, len(s.options))
	for i := range s.options {
		hosts[i] = s.Host(i)
	}
	return "nats://" + strings.Join(hosts, ",")
}

// Host returns host and port of one server.
func (s *Servers) Host(i int) string { return fmt.Sprintf("127.0.0.1:%d", s.options[i].Port) }

// Stop ends a server like SIGTERM: it hands over leadership, its connections break, and its stored
// data stays. A stopped server stays stopped.
func (s *Servers) Stop(i int) {
	if s.servers[i] == nil {
		return
	}
	s.servers[i].Shutdown()
	s.servers[i].WaitForShutdown()
	s.servers[i] = nil
}

// Start restarts a stopped server with its stored data, at the same address. It does not wait for the cluster: Wait does.
func (s *Servers) Start(i int) {
	s.t.Helper()
	if s.servers[i] == nil {
		s.start(i)
	}
}

func (s *Servers) start(i int) {
	s.t.Helper()
	o := s.options[i].Clone()
	srv, err := server.NewServer(o)
	if err != nil {
		s.t.Fatal(err)
	}
	srv.Start()
	if !srv.ReadyForConnections(ready) {
		s.t.Fatalf("server %d does not start", i)
	}
	s.servers[i] = srv
}

// Options returns the options for the next start of a server.
func (s *Servers) Options(i int) *server.Options { return s.options[i] }

// Wait waits until JetStream works on the running servers; a cluster needs a leader, and so most of its servers.
func (s *Servers) Wait() {
	s.t.Helper()
	for end := time.Now().Add(ready); ; time.Sleep(20 * time.Millisecond) {
		for _, srv := range s.servers {
			if srv != nil && (!srv.JetStreamEnabled() || srv.JetStreamIsLeader() || len(s.servers) == 1) {
				return
			}
		}
		if time.Now().After(end) {
			s.t.Fatal("the servers have no leader of their streams")
		}
	}
}

// freePorts returns unused ports. It holds all of them until it has the last, so that they differ.
func freePorts(t testing.TB, n int) []int {
	t.Helper()
	ports := make([]int, n)
	for i := range ports {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports
}

// JetStream returns a separate connection for tests that inspect streams. It has no user.
func (s *Servers) JetStream(t testing.TB) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}
