package confine

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/idna"
	"golang.org/x/net/proxy"

	"github.com/racflow/racflow/engine/internal/process/confine/cage"
)

type hostKey struct{}

// withHost stores the host of a request in the context.
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

// direct connects to the address of the host or of the user's own proxy. A host must not resolve to
// this machine unless the file names this machine; a proxy may be anywhere.
func (d dialer) direct(ctx context.Context, network, address string) (net.Conn, error) {
	asked := hostOf(ctx)
	check := func(_, resolved string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(resolved)
		if err == nil && address == asked.String() && !asked.local() && ours(at.Addr()) {
			err = fmt.Errorf("%s is an address of this machine; to allow it write network = [%q]", at.Addr(), at)
		}
		return err
	}
	return (&net.Dialer{Timeout: patience, Control: check, Resolver: d.resolver}).DialContext(ctx, network, address)
}

// connect connects to the host of a context, through the user's own proxy if there is one.
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

// begun is a connection from which a buffer may have read ahead.
type begun struct {
	net.Conn
	rest *bufio.Reader
}

func (b begun) Read(p []byte) (int, error) { return b.rest.Read(p) }

// CloseWrite closes one direction, which TCP and TLS connections support.
func (b begun) CloseWrite() error { return b.Conn.(interface{ CloseWrite() error }).CloseWrite() }

// Host is one allowed destination of a plugin.
type Host struct {
	name     string // lower-case ASCII; addresses in canonical form
	port     uint16
	wildcard bool // exactly one label has to precede name
}

// ParseHost parses "host:port". The host is a name, an address ("10.0.0.5:80", "[2001:db8::1]:80"),
// or a name whose first label is "*", which matches exactly one label.
func ParseHost(text string) (Host, error) {
	name, port, err := net.SplitHostPort(text)
	if err != nil || strings.Contains(text, "//") {
		return Host{}, fmt.Errorf("%q is no host with a port; write for example \"api.example.com:443\"", text)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 {
		return Host{}, fmt.Errorf("%q: the port must be a number from 1 to 65535", text)
	}
	h := Host{port: uint16(number)}
	name, h.wildcard = strings.CutPrefix(name, "*.")
	if h.name, err = normalize(name); err != nil {
		return Host{}, fmt.Errorf("%q: %w; \"*\" stands for the whole first label of a name", text, err)
	}
	if _, err := netip.ParseAddr(h.name); h.wildcard && (err == nil || !strings.Contains(h.name, ".")) {
		return Host{}, fmt.Errorf("%q allows too much: \"*\" needs a domain behind it, such as \"*.example.com:443\"", text)
	}
	return h, nil
}

// String returns the entry as a file writes it.
func (h Host) String() string {
	name := h.name
	if h.wildcard {
		name = "*." + name
	}
	return net.JoinHostPort(name, strconv.Itoa(int(h.port)))
}

// allows reports whether h covers other, which is no wildcard.
func (h Host) allows(other Host) bool {
	if h.port != other.port {
		return false
	}
	if !h.wildcard {
		return h.name == other.name
	}
	label, rest, _ := strings.Cut(other.name, ".")
	return label != "" && rest == h.name
}

// local reports whether the entry names this machine: localhost, or an address of its own.
func (h Host) local() bool {
	if h.wildcard {
		return false
	}
	address, err := netip.ParseAddr(h.name)
	return h.name == "localhost" || err == nil && ours(address)
}

// ThisMachine reports whether a host, with or without a port, is localhost or a loopback address.
func ThisMachine(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || err == nil && address.Unmap().IsLoopback()
}

// Loopback returns the entries on this machine's loopback, in canonical form. Clients connect to
// these directly, without a proxy.
func Loopback(entries []string) []string {
	var all []string
	for _, text := range entries {
		if h, err := ParseHost(text); err == nil && h.loopback() {
			all = append(all, h.String())
		}
	}
	return all
}

func (h Host) loopback() bool { return !h.wildcard && ThisMachine(h.name) }

var errName = errors.New("that is no name of a host")

// normalize returns the canonical spelling of a name or an address.
func normalize(name string) (string, error) {
	if address, err := netip.ParseAddr(name); err == nil {
		return address.Unmap().String(), nil
	}
	ascii, err := idna.Lookup.ToASCII(strings.TrimSuffix(name, "."))
	if err != nil || ascii == "" || len(ascii) > 253 {
		return "", errName
	}
	return ascii, nil
}

// ours reports whether an address leads to this machine, or to a network that only it reaches.
func ours(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsUnspecified() || a.IsMulticast() {
		return true
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return true // unknown, so it may be ours
	}
	for _, i := range own {
		if prefix, err := netip.ParsePrefix(i.String()); err == nil && prefix.Addr() == a {
			return true
		}
	}
	return false
}

// places returns the addresses at which a plugin reaches each host on this machine's loopback: the
// host's own address, and 127.0.0.1 and ::1 unless another host is there, because clients choose
// what "localhost" means.
func places(local []string) []cage.Local {
	var all []cage.Local
	taken := map[netip.AddrPort]bool{}
	add := func(address netip.Addr, port uint16, host string) {
		if at := netip.AddrPortFrom(address, port); !taken[at] {
			taken[at] = true
			all = append(all, cage.Local{IP: address.AsSlice(), Port: port, Host: host})
		}
	}
	for _, host := range local {
		if at, err := netip.ParseAddrPort(host); err == nil {
			add(at.Addr(), at.Port(), host)
		}
	}
	for _, text := range local {
		host, err := ParseHost(text)
		if at, no := netip.ParseAddr(host.name); err != nil || no == nil && at != loopback[0] && at != loopback[1] {
			continue // an address such as 127.0.0.2
		}
		for _, address := range loopback {
			add(address, host.port, text)
		}
	}
	return all
}

// loopback lists the addresses of "localhost".
var loopback = [...]netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
