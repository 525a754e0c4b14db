//go:build linux

package main

import (
	"net"
	"strings"
	"sync"
	"testing"
)

// partition stands between a process and the servers: it passes everything on until it is told to hold it, as
// a network does that loses packets, or to cut connections.
type partition struct {
	t    *testing.T
	urls string // as the process behind it sees the servers

	mu    sync.Mutex
	open  chan struct{} // closed while everything passes
	cut   bool
	conns map[net.Conn]bool
}

// newPartition stands before servers, and ends with the test.
func newPartition(t *testing.T, c *natsServers) *partition {
	t.Helper()
	p := &partition{t: t, open: make(chan struct{}), conns: map[net.Conn]bool{}}
	close(p.open)
	var urls []string
	for _, s := range c.all {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go p.accept(l, s.address)
		t.Cleanup(func() { _ = l.Close() })
		urls = append(urls, "nats://"+l.Addr().String())
	}
	p.urls = strings.Join(urls, ",")
	t.Cleanup(func() { p.isolate(true); p.heal() })
	return p
}

func (p *partition) accept(l net.Listener, to string) {
	for {
		from, err := l.Accept()
		if err != nil {
			return
		}
		go p.connect(from, to)
	}
}

// connect joins a connection with a new one to a server; both end together.
func (p *partition) connect(from net.Conn, address string) {
	defer from.Close()
	to, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer to.Close()
	if !p.keep(from, to) {
		return
	}
	defer p.drop(from, to)
	done := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
		go func() {
			p.pass(pair[0], pair[1])
			done <- struct{}{}
		}()
	}
	<-done
}

// keep notes connections, unless they would be cut.
func (p *partition) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.conns[c] = true
	}
	return !p.cut
}

func (p *partition) drop(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		delete(p.conns, c)
	}
}

// pass copies from one connection to the other, as long as nothing holds it.
func (p *partition) pass(from, to net.Conn) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		p.mu.Lock()
		open := p.open
		p.mu.Unlock()
		<-open
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// isolate lets nothing through any more. With cut, connections end, and so do new ones; without, they stay as
// they are, and silent.
func (p *partition) isolate(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open, p.cut = make(chan struct{}), cut
	if cut {
		close(p.open) // there is nothing to hold
		for c := range p.conns {
			_ = c.Close()
		}
	}
}

// heal lets everything through again, with what was held.
func (p *partition) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = false
	select {
	case <-p.open:
	default:
		close(p.open)
	}
}
