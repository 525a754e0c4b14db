package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	"golang.org/x/net/proxy"
)

type hostKey struct{}

// withHost notes which host a request is for.
func withHost(ctx context.Context, h Host) context.Context {
	return context.WithValue(ctx, hostKey{}, h)
}

func hostOf(ctx context.Context) Host {
	h, _ := ctx.Value(hostKey{}).(Host)
	return h
}

// dialer connects to the host of a context, and to the user's own proxies.
type dialer struct {
	proxies  func(*url.URL) (*url.URL, error) // of the user's environment
	resolver *net.Resolver                    // nil: the system's
}

// direct connects to an address. That of the host must not be this machine's unless the file names
// it so; a proxy of the user's may be anywhere.
func (d dialer) direct(ctx context.Context, network, address string) (net.Conn, error) {
	asked := hostOf(ctx)
	check := func(_, resolved string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(resolved)
		if err == nil && address == asked.String() && !asked.Local() && ours(at.Addr()) {
			err = fmt.Errorf("%s is an address of this machine; to allow it write network = [%q]", at.Addr(), at)
		}
		return err
	}
	return (&net.Dialer{Timeout: patience, Control: check, Resolver: d.resolver}).DialContext(ctx, network, address)
}

// connect connects to the host of a context, through the user's own proxy where there is one.
func (d dialer) connect(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	host := hostOf(ctx).String()
	by, err := d.proxies(&url.URL{Scheme: "https", Host: host})
	switch {
	case err != nil:
		return nil, fmt.Errorf("the proxy of the environment: %w", err)
	case by == nil:
		return d.direct(ctx, "tcp", host)
	case by.Scheme == "http" || by.Scheme == "https":
		return d.through(ctx, by, host)
	}
	socks, err := proxy.FromURL(by, &net.Dialer{})
	if err != nil {
		return nil, fmt.Errorf("the proxy of the environment: %w", err)
	}
	return socks.(proxy.ContextDialer).DialContext(ctx, "tcp", host)
}

// through asks another proxy for a connection.
func (d dialer) through(ctx context.Context, by *url.URL, host string) (net.Conn, error) {
	address := by.Host
	if by.Port() == "" {
		address = net.JoinHostPort(by.Hostname(), map[string]string{"http": "80", "https": "443"}[by.Scheme])
	}
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	if by.Scheme == "https" {
		c = tls.Client(c, &tls.Config{ServerName: by.Hostname(), MinVersion: tls.VersionTLS12})
	}
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: host}, Host: host, Header: http.Header{}}
	if by.User != nil {
		password, _ := by.User.Password()
		request.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(by.User.Username()+":"+password)))
	}
	rest := bufio.NewReader(c)
	if err = request.Write(c); err == nil {
		var reply *http.Response
		//nolint:bodyclose // what follows is the connection
		if reply, err = http.ReadResponse(rest, request); err == nil && reply.StatusCode != http.StatusOK {
			err = fmt.Errorf("the proxy of the environment answered %s", reply.Status)
		}
	}
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return begun{c, rest}, nil
}

// begun is a connection of which a part may have been read.
type begun struct {
	net.Conn
	rest *bufio.Reader
}

func (b begun) Read(p []byte) (int, error) { return b.rest.Read(p) }

// CloseWrite ends one direction; connections of TCP and TLS can.
func (b begun) CloseWrite() error { return b.Conn.(interface{ CloseWrite() error }).CloseWrite() }
