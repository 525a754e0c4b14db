package confine

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
)

// relay forwards connections of the plugin to the proxy. For the listener of a host, relay first
// asks the proxy for that host. The listener may be in the plugin's own network, which this process
// cannot enter.
func relay(listener net.Listener, proxy, host string) {
	for {
		from, err := listener.Accept()
		if err != nil {
			return
		}
		go pass(from, proxy, host)
	}
}

func pass(from net.Conn, proxy, host string) {
	defer func() { _ = from.Close() }()
	to, err := net.Dial("unix", proxy) //nolint:noctx // the proxy is part of this racflow
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	answers := bufio.NewReader(to)
	if host != "" && !ask(to, answers, host) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(to, from); _ = to.(*net.UnixConn).CloseWrite() })
	both.Go(func() { _, _ = io.Copy(from, answers); _ = from.(*net.TCPConn).CloseWrite() })
	both.Wait()
}

// ask asks the proxy for a host. A proxy that refuses reports that to the user.
func ask(proxy io.Writer, answers *bufio.Reader, host string) bool {
	if _, err := fmt.Fprintf(proxy, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", host, host); err != nil {
		return false
	}
	first, err := answers.ReadString('\n')
	for line := first; err == nil && line != "\r\n"; {
		line, err = answers.ReadString('\n')
	}
	return err == nil && strings.HasPrefix(first, "HTTP/1.1 200 ")
}
