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

	mu     sync.Mutex
	cut    bool
	frozen [2]chan struct{} // to the server and from it; closed: bytes flow
	conns  map[net.Conn]bool
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
	for i := range p.frozen {
		p.frozen[i] = make(chan struct{})
		close(p.frozen[i])
	}
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
		p.thaw()
	})
	return p
}

// URL returns the URL of the server through the proxy.
func (p *Proxy) URL() string { return "nats://" + p.listener.Addr().String() }

// Cut closes all connections and accepts no others until Heal.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	for c := range p.conns {
		_ = c.Close()
	}
}

// Freeze stops the traffic in both directions until Heal, but keeps connections open.
func (p *Proxy) Freeze() { p.freeze(0, 1) }

// Mute stops the traffic from the server, but not that to it, until Heal.
func (p *Proxy) Mute() { p.freeze(1) }

func (p *Proxy) freeze(directions ...int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, i := range directions {
		select {
		case <-p.frozen[i]:
			p.frozen[i] = make(chan struct{})
		default:
		}
	}
}

// Heal ends Cut, Freeze and Mute; delayed traffic flows.
func (p *Proxy) Heal() {
	p.mu.Lock()
	p.cut = false
	p.mu.Unlock()
	p.thaw()
}

func (p *Proxy) thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, frozen := range p.frozen {
		select {
		case <-frozen:
		default:
			close(frozen)
		}
	}
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
	pass := func(to, from net.Conn, direction int) {
		buffer := make([]byte, 32<<10)
		for {
			n, err := from.Read(buffer)
			p.mu.Lock()
			frozen := p.frozen[direction]
			p.mu.Unlock()
			<-frozen
			if n > 0 {
				if _, err := to.Write(buffer[:n]); err != nil {
					break
				}
			}
			if err != nil {
				break
			}
		}
		done <- struct{}{}
	}
	go pass(in, out, 1)
	go pass(out, in, 0)
	<-done
}
