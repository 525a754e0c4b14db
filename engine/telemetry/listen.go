package telemetry

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Listen opens an address of this machine for the metrics of a command: a port, or a host
// and a port. One that others can reach is refused, since nothing guards it.
func Listen(address string) (net.Listener, error) {
	if _, _, err := net.SplitHostPort(address); err != nil {
		address = ":" + address
	}
	at, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%w; name a port, or a host and a port, such as 127.0.0.1:9464", err)
	}
	if at.IP == nil {
		at.IP = net.IPv4(127, 0, 0, 1)
	}
	if !at.IP.IsLoopback() {
		return nil, fmt.Errorf("%s can be reached from other machines, and nothing guards metrics; name 127.0.0.1 and a port", address)
	}
	return net.ListenTCP("tcp", at)
}

// Serve serves the metrics at /metrics until the listener is closed.
func (t *Telemetry) Serve(l net.Listener, log *slog.Logger) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", t.Handler())
	s := &http.Server{
		Handler: mux, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	if err := s.Serve(l); !errors.Is(err, net.ErrClosed) {
		log.Warn("metrics are not served any more", "error", err)
	}
	_ = s.Close()
}
