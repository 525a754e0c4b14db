package natstest

import (
	"context"
	"net"
	"sync"
	"testing"
)

// Proxy stands between processes and one server, and takes the network away from them.
type Proxy struct {
	listener net.Listener
	target   string
	ctx      context.Context // of the test

	mu     sync.Mutex
	cut    bool
	frozen [2]chan struct{} // by direction, to the server and from it; closed: bytes flow
	conns  map[net.Conn]bool
}

// Proxy begins one for a server, until the test ends. In a cluster set NoAdvertise of the servers' cluster options, else clients learn of
// the ways around it.
func (s *Servers) Proxy(i int) *Proxy { return NewProxy(s.t, s.Host(i)) }

// NewProxy is Proxy for a server by its host and port.
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

// URL of the server behind it.
func (p *Proxy) URL() string { return "nats://" + p.listener.Addr().String() }

// Cut ends all connections and takes no others until Heal.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	for c := range p.conns {
		_ = c.Close()
	}
}

// Freeze lets connections stand and nothing flow, either way, until Heal.
func (p *Proxy) Freeze() { p.freeze(0, 1) }

// Mute lets everything through to the server and nothing from it, until Heal.
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

// Heal ends Cut, Freeze and Mute; what was held back flows.
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
