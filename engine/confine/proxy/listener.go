package proxy

import (
	"net"
	"sync"
)

// limited is a listener that accepts a bounded number of connections at a time. (That of
// package netutil hides that one direction of a connection can be closed.)
type limited struct {
	*net.UnixListener
	free   chan struct{}
	closed chan struct{}
	once   sync.Once
}

func limit(l *net.UnixListener, n int) *limited {
	return &limited{UnixListener: l, free: make(chan struct{}, n), closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.free <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.AcceptUnix()
	if err != nil {
		<-l.free
		return nil, err
	}
	return &accepted{UnixConn: c, release: sync.OnceFunc(func() { <-l.free })}, nil
}

// Close implements net.Listener.
func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.UnixListener.Close()
}

type accepted struct {
	*net.UnixConn
	release func()
}

// Close implements net.Conn.
func (c *accepted) Close() error {
	err := c.UnixConn.Close()
	c.release()
	return err
}
