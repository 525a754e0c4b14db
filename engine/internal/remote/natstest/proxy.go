package natstest

import (
	"context"
	"net"
	"sync"
	"testing"
)

// Proxy stands between processes and one server, and can interrupt their network.
type Proxy struct {
	listener net.Listener
	target   string
	ctx      context.Context // of the test

	mu      sync.Mutex
	changed sync.Cond
	cut     bool
	held    [2]bool // traffic to the server and from it
	conns   map[net.Conn]bool
}

// Proxy starts a proxy for a server that lasts until the test ends. In a cluster, set NoAdvertise
// in the servers' cluster options, or clients bypass the proxy.
func (s *Servers) Proxy(i int) *Proxy { return NewProxy(s.t, s.Host(i)) }

// NewProxy is Servers.Proxy for a server given by host and port.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: l, target: target, ctx: t.Context(), conns: map[net.Conn]bool{}}
	p.changed.L = &p.mu
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		p.Cut()
	})
	return p
}

// URL returns the URL of the server through the proxy.
func (p *Proxy) URL() string { return "nats://" + p.listener.Addr().String() }

// Cut closes all connections and accepts no others until Heal.
func (p *Proxy) Cut() { p.set(true, [2]bool{}) }

// Freeze stops the traffic in both directions until Heal, but keeps connections open.
func (p *Proxy) Freeze() { p.set(false, [2]bool{true, true}) }

// Mute stops the traffic from the server, but not that to it, until Heal.
func (p *Proxy) Mute() { p.set(false, [2]bool{false, true}) }

// Heal ends Cut, Freeze and Mute; delayed traffic flows.
func (p *Proxy) Heal() { p.set(false, [2]bool{}) }

func (p *Proxy) set(cut bool, held [2]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut, p.held = cut, held; cut {
		for c := range p.conns {
			_ = c.Close()
		}
	}
	p.changed.Broadcast()
}

func (p *Proxy) serve(in net.Conn) {
	defer func() { _ = in.Close() }()
	out, err := new(net.Dialer).DialContext(p.ctx, "tcp", p.target)
	if err != nil {
		return
	}
	defer func() { _ = out.Close() }()
	p.mu.Lock()
	if p.cut {
		p.mu.Unlock()
		return
	}
	p.conns[in], p.conns[out] = true, true
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.conns, in)
		delete(p.conns, out)
	}()
	done := make(chan struct{}, 2)
	for direction, ends := range [2][2]net.Conn{{in, out}, {out, in}} {
		go func() {
			p.pass(ends[0], ends[1], direction)
			done <- struct{}{}
		}()
	}
	<-done
}

// pass passes traffic on until an end is closed.
func (p *Proxy) pass(from, to net.Conn, direction int) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.mu.Lock()
		for p.held[direction] {
			p.changed.Wait()
		}
		p.mu.Unlock()
		if _, failed := to.Write(buffer[:n]); err != nil || failed != nil {
			return
		}
	}
}
