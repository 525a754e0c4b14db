package proxy

import (
	"io"
	"net"
	"net/http"
	"sync"
)

// tunnels are the connections that CONNECT made.
type tunnels struct {
	mu     sync.Mutex
	closed bool
	open   map[io.Closer]bool
}

// add notes a connection that close ends.
func (t *tunnels) add(c io.Closer) (remove func(), ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, false
	}
	t.open[c] = true
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.open, c)
	}, true
}

func (t *tunnels) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for c := range t.open {
		_ = c.Close()
	}
}

// serve connects a plugin with a host until either ends.
func (t *tunnels) serve(w http.ResponseWriter, far net.Conn) {
	defer far.Close() //nolint:errcheck // it may be closed already
	near, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer near.Close() //nolint:errcheck // the same
	for _, c := range []io.Closer{near, far} {
		remove, ok := t.add(c)
		if !ok {
			return
		}
		defer remove()
	}
	if _, err := io.WriteString(near, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { pass(far, buffered.Reader) }) // which may hold what followed the request
	both.Go(func() { pass(near, far) })
	both.Wait()
}

// pass copies until the end, and passes that on: the other direction may have more to say.
func pass(to net.Conn, from io.Reader) {
	_, err := io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
		_ = half.CloseWrite()
		return
	}
	_ = to.Close()
}
