package proxy

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// Host is one entry of what a plugin may reach.
type Host struct {
	name     string // in lower case and ASCII; an address in its usual form
	port     uint16
	wildcard bool // any one label stands before name
}

// ParseHost reads "host:port". A host is a name, an address ("10.0.0.5:80", "[2001:db8::1]:80"), or
// a name whose first label is "*", which stands for exactly one label.
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

// String is the entry as a file has it.
func (h Host) String() string {
	name := h.name
	if h.wildcard {
		name = "*." + name
	}
	return net.JoinHostPort(name, strconv.Itoa(int(h.port)))
}

// allows reports whether other, which is no wildcard, is covered.
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

// Local reports whether the entry names this machine: the word localhost, or an address of
// its own.
func (h Host) Local() bool {
	if h.wildcard {
		return false
	}
	address, err := netip.ParseAddr(h.name)
	return h.name == "localhost" || err == nil && ours(address)
}

// Loopback returns those of a file's entries that lie on this machine's loopback, each in its
// usual form. Clients ask no proxy for these: they connect to them.
func Loopback(entries []string) []string {
	var all []string
	for _, text := range entries {
		if h, err := ParseHost(text); err == nil && h.loopback() {
			all = append(all, h.String())
		}
	}
	return all
}

func (h Host) loopback() bool {
	address, err := netip.ParseAddr(h.name)
	return !h.wildcard && (h.name == "localhost" || err == nil && address.IsLoopback())
}

var errName = errors.New("that is no name of a host")

// normalize makes one spelling of the several that a name or an address has.
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

// ours reports whether an address leads to this machine, or to what only it reaches.
func ours(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsUnspecified() || a.IsMulticast() {
		return true
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return true // nobody can say that it is another's
	}
	for _, i := range own {
		if prefix, err := netip.ParsePrefix(i.String()); err == nil && prefix.Addr() == a {
			return true
		}
	}
	return false
}
