package cage

import (
	"errors"

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

// furnish listens in the plugin's network, for the local hosts and for the proxy, whose port it
// returns.
func furnish(local []Local) (port int, err error) {
	for _, l := range local {
		_, err := listen(l)
		if len(l.IP) == 16 && (errors.Is(err, unix.EADDRNOTAVAIL) || errors.Is(err, unix.EAFNOSUPPORT)) {
			continue // the system has no IPv6
		}
		if err != nil {
			return 0, err
		}
	}
	// Last, because it takes any free port.
	return listen(Local{IP: []byte{127, 0, 0, 1}})
}

// openPorts returns the ports that a plugin in racflow's network may connect to: the proxy's port (0:
// there is no proxy) and the ports of the hosts.
func openPorts(proxy int, local []Local) []uint16 {
	var all []uint16
	if proxy != 0 {
		all = append(all, uint16(proxy))
	}
	for _, l := range local {
		all = append(all, l.Port)
	}
	return all
}

// families returns the address families of the TCP sockets that a plugin in racflow's network may create.
func families(s *Spec) []uint32 {
	switch {
	case !s.Network:
		return nil
	case len(s.Local) == 0:
		return []uint32{unix.AF_INET} // the proxy listens there
	}
	return []uint32{unix.AF_INET, unix.AF_INET6}
}

// listen listens in the plugin's network and sends the listener to racflow. racflow's proxy forwards
// its connections to the host. If the host is empty, they are requests to the proxy itself.
func listen(l Local) (port int, err error) {
	var family int
	var to unix.Sockaddr
	if len(l.IP) == 4 {
		family, to = unix.AF_INET, &unix.SockaddrInet4{Port: int(l.Port), Addr: [4]byte(l.IP)}
	} else {
		family, to = unix.AF_INET6, &unix.SockaddrInet6{Port: int(l.Port), Addr: [16]byte(l.IP)}
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
	send(Report{Host: l.Host}, unix.UnixRights(fd))
	if at, ok := at.(*unix.SockaddrInet4); ok {
		port = at.Port
	}
	return port, nil
}
