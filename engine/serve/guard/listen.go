package guard

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"golang.org/x/net/netutil"
)

// Network is how a server is reached.
type Network struct {
	Address   string // such as 127.0.0.1:8080
	Cert, Key string // PEM files; empty: without TLS. They are read again when they have changed.
	// Insecure allows an address that other machines reach without TLS or without tokens:
	// something in front of it, or the network, has to see to that.
	Insecure    bool
	Connections int // open at a time; more wait until others close; 0: any number
	Log         *slog.Logger
}

// Listen begins to listen. It refuses to do so where others could listen in or everybody
// could call.
func Listen(n Network, tokens *Tokens) (net.Listener, error) {
	if (n.Cert == "") != (n.Key == "") {
		return nil, fmt.Errorf("TLS takes a certificate and a key: give both files")
	}
	if !Loopback(n.Address) && !n.Insecure {
		switch {
		case n.Cert == "":
			return nil, fmt.Errorf("%s can be reached from other machines: give a certificate and a key for TLS, or allow what is insecure where something in front of racflow sees to that", n.Address)
		case tokens == nil:
			return nil, fmt.Errorf("%s can be reached from other machines: give tokens, or allow what is insecure where everybody may call", n.Address)
		}
	}
	var config *tls.Config
	if n.Cert != "" {
		pair, err := watch(n.Log, func() (*tls.Certificate, error) {
			c, err := tls.LoadX509KeyPair(n.Cert, n.Key)
			return &c, err
		}, n.Cert, n.Key)
		if err != nil {
			return nil, fmt.Errorf("certificate: %w", err)
		}
		config = &tls.Config{
			MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return pair.get(), nil },
		}
	}
	var listening net.ListenConfig
	l, err := listening.Listen(context.Background(), "tcp", n.Address)
	if err != nil {
		return nil, err
	}
	if n.Connections > 0 {
		l = netutil.LimitListener(l, n.Connections)
	}
	if config != nil {
		l = tls.NewListener(l, config)
	}
	return l, nil
}

// NewServer returns a server whose connections end when nothing comes through them in
// time. Bodies and answers have deadlines of their own (Options).
func NewServer(h http.Handler, o Options) *http.Server {
	o = o.Defaults()
	return &http.Server{
		Handler: h, ReadHeaderTimeout: o.Header, IdleTimeout: o.Idle, MaxHeaderBytes: headerBytes,
		ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug), // what strangers send is no event of ours
	}
}

// headerBytes is how large the headers of a request may be; the server answers those
// beyond with 431.
const headerBytes = 32 << 10
