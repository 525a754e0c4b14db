package confine

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// raiseLoopback enables 127.0.0.1 in a new network namespace.
func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}

// loopback lists the addresses of "localhost".
var loopback = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}

// furnish listens in the plugin's network, for the proxy, whose port it returns, and for the local
// hosts.
func furnish(local []string) (port int, err error) {
	for at, host := range places(local) {
		_, err := listen(at, host)
		if at.Addr().Is6() && (errors.Is(err, unix.EADDRNOTAVAIL) || errors.Is(err, unix.EAFNOSUPPORT)) {
			continue // the system has no IPv6
		}
		if err != nil {
			return 0, err
		}
	}
	// Last, because it takes any free port.
	return listen(netip.AddrPortFrom(loopback[0], 0), "")
}

// places returns the addresses at which the plugin reaches each host: the host's own address, and
// 127.0.0.1 and ::1 unless another host is there, because clients choose what "localhost" means.
func places(local []string) map[netip.AddrPort]string {
	all := map[netip.AddrPort]string{}
	add := func(at netip.AddrPort, host string) {
		if _, taken := all[at]; !taken {
			all[at] = host
		}
	}
	for _, host := range local {
		if at, err := netip.ParseAddrPort(host); err == nil {
			add(at, host)
		}
	}
	for _, host := range local {
		if at, err := netip.ParseAddrPort(host); err == nil && !slices.Contains(loopback, at.Addr()) {
			continue // an address such as 127.0.0.2
		}
		for _, address := range loopback {
			add(netip.AddrPortFrom(address, portOf(host)), host)
		}
	}
	return all
}

// cagePorts returns the ports that a plugin in racflow's network may connect to: that of the
// keeper's relay (0: there is none) and those of the hosts.
func cagePorts(relay int, local []string) []uint16 {
	var all []uint16
	if relay != 0 {
		all = append(all, uint16(relay))
	}
	for _, host := range local {
		all = append(all, portOf(host))
	}
	return all
}

// families returns the address families of the TCP sockets that a plugin in racflow's network may create.
func families(s *Spec) []uint32 {
	switch {
	case !s.Network:
		return nil
	case len(s.Local) == 0:
		return []uint32{unix.AF_INET} // the relay listens there
	}
	return []uint32{unix.AF_INET, unix.AF_INET6}
}

func portOf(host string) uint16 {
	_, text, _ := net.SplitHostPort(host)      // valid: racflow has parsed it
	port, _ := strconv.ParseUint(text, 10, 16) // also valid
	return uint16(port)
}

// listen listens in the plugin's network and sends the listener to the keeper. The keeper, in
// racflow's network, forwards the connections to host or, if host is empty, to the proxy.
func listen(address netip.AddrPort, host string) (port int, err error) {
	family, to := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Port: int(address.Port()), Addr: address.Addr().As16()})
	if address.Addr().Is4() {
		family, to = unix.AF_INET, &unix.SockaddrInet4{Port: int(address.Port()), Addr: address.Addr().As4()}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Bind(fd, to); err != nil {
		return 0, err
	}
	if err := unix.Listen(fd, unix.SOMAXCONN); err != nil {
		return 0, err
	}
	at, err := unix.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	send(Report{Host: host}, fd)
	if at, ok := at.(*unix.SockaddrInet4); ok {
		port = at.Port
	}
	return port, nil
}
