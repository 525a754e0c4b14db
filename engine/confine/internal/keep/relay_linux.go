package keep

import (
	"io"
	"net"
	"sync"
)

// relay passes what the plugin sends to the proxy. The listener may be in the plugin's own
// network, which this process could not enter.
func relay(listener net.Listener, proxy string) {
	for {
		from, err := listener.Accept()
		if err != nil {
			return
		}
		go pass(from, proxy)
	}
}

func pass(from net.Conn, proxy string) {
	defer func() { _ = from.Close() }()
	to, err := net.Dial("unix", proxy) //nolint:noctx // the proxy is this racflow
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(to, from); _ = to.(*net.UnixConn).CloseWrite() })
	both.Go(func() { _, _ = io.Copy(from, to); _ = from.(*net.TCPConn).CloseWrite() })
	both.Wait()
}
