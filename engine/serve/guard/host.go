package guard

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Loopback reports whether only this machine can reach an address such as 127.0.0.1:8080.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && local(host)
}

// local reports whether a name is this machine wherever it is looked up.
func local(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// known reports whether a request's Host is one of this server's. Whoever can make a name
// resolve to a loopback address could otherwise let web pages call this server under it
// (DNS rebinding).
func (o *Options) known(r *http.Request) bool {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.Trim(host, "[]"), ".")
	if slices.ContainsFunc(o.Hosts, func(h string) bool { return strings.EqualFold(h, host) }) {
		return true
	}
	if o.Local {
		return local(host)
	}
	return len(o.Hosts) == 0 || local(host) && fromHere(r)
}

// fromHere reports whether a request comes from this machine.
func fromHere(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	return err == nil && local(host)
}
