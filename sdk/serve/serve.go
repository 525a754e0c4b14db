package serve

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/nodump"
	"github.com/racflow/racflow/sdk/wire"
)

// Plugin serves the stages of p until the engine that started this process
// lets go of it. It is all that a plugin's main function does. A process that
// no engine has started says what it is and exits with status 1.
//
// On Linux, other processes of the same user cannot read this one from then on;
// see package nodump.
//
// Standard error carries the log, as lines of JSON. Standard output belongs to
// the engine until the first request; what is printed later reaches its log.
func Plugin(p sdk.Plugin) {
	if os.Getenv(wire.CookieKey) != wire.CookieValue {
		fmt.Fprintf(os.Stderr, "%s is a plugin for racflow, which starts it where a pipeline file uses one of its stages.\n", p.Name)
		os.Exit(1)
	}
	if err := nodump.Set(); err != nil { // Configure brings secrets
		fmt.Fprintln(os.Stderr, "warning:", err)
	}
	stdin := bufio.NewReader(os.Stdin)
	var secured func() (*tls.Config, error) // nil: go-plugin makes a certificate
	if os.Getenv(wire.StageKey) != "" {
		given, _ := stdin.ReadBytes(0)
		secured = func() (*tls.Config, error) { return showing(given, os.Getenv("PLUGIN_CLIENT_CERT")) }
	}
	go exitWithHost(stdin, os.Getenv(plugin.EnvUnixSocketDir))
	if os.Getenv("GOGC") == "" {
		boundGarbage()
	}
	// go-plugin replaces os.Stderr by one that is read while the process lives. The
	// log and the stage have the real one, so that the last words of a process that
	// crashes are not lost. The engine filters by level.
	s := NewServer(p, slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})))
	stderr := os.Stderr
	s.opened = func() {
		os.Stderr = stderr
		forgetHandshake()
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: wire.Handshake(),
		Plugins:         plugin.PluginSet{"stage": registrar{server: s}},
		GRPCServer: func(options []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(options, wire.ServerOptions()...)...)
		},
		TLSProvider: secured,
		Logger:      hclog.NewNullLogger(),
	})
	s.Close()
}

// showing is the configuration of a built-in stage, which shows a certificate that the host has made for all of them:
// go-plugin would make a P-521 key in each process, which takes as long as all else at a start. Whoever calls has to show a
// certificate of the authority.
func showing(given []byte, authority string) (*tls.Config, error) {
	given = bytes.TrimSuffix(given, []byte{0})
	own, err := tls.X509KeyPair(given, given)
	if err != nil {
		return nil, err
	}
	callers := x509.NewCertPool()
	callers.AppendCertsFromPEM([]byte(authority))
	return &tls.Config{
		Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12,
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: callers,
	}, nil
}

// exitWithHost waits for the end of standard input, which the host holds open
// as long as it lives: this also works when it is killed.
func exitWithHost(stdin io.Reader, dir string) {
	_, _ = io.Copy(io.Discard, stdin)
	if dir != "" {
		sockets, _ := filepath.Glob(filepath.Join(dir, "plugin*"))
		for _, socket := range sockets {
			_ = os.Remove(socket)
		}
		_ = os.Remove(dir)
	}
	os.Exit(0)
}

// forgetHandshake takes what the engine has said at the start out of the environment: what the
// stage starts in turn is no plugin.
func forgetHandshake() {
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if name == wire.CookieKey || name == wire.StageKey || strings.HasPrefix(name, "PLUGIN_") {
			_ = os.Unsetenv(name)
		}
	}
}

// registrar puts the server into go-plugin's.
type registrar struct {
	plugin.NetRPCUnsupportedPlugin
	server *Server
}

func (r registrar) GRPCServer(_ *plugin.GRPCBroker, g *grpc.Server) error {
	r.server.Register(g)
	return nil
}

func (registrar) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("this is the plugin's end")
}
