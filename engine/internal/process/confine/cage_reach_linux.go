package confine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// place is a file or folder that the plugin may access.
type place struct {
	path   string // without symbolic links
	folder bool
	write  bool
	socket bool // the plugin may connect to sockets in it
}

// reach lists everything that the plugin may access.
type reach struct {
	places []place           // a folder precedes its contents
	links  map[string]string // symbolic links on the way to the places, with their targets
}

// system lists the files that dynamically linked programs need, and that most programs read. None
// of them is about the user.
var system = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store", "/run/current-system/sw",
	"/proc", "/sys/devices/system/cpu", "/sys/devices/system/node", "/sys/fs/cgroup", "/sys/kernel/mm",
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload", "/etc/localtime", "/etc/timezone",
	"/etc/alternatives", "/etc/os-release", "/etc/debian_version", "/etc/mime.types", "/etc/locale.alias", "/etc/locale.conf",
	"/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/hosts", "/etc/host.conf", "/etc/resolv.conf", "/etc/gai.conf",
	"/etc/services", "/etc/protocols", "/etc/fonts", "/etc/OpenCL",
	"/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs", "/etc/pki/tls/cert.pem",
	"/etc/pki/tls/openssl.cnf", "/etc/pki/ca-trust", "/etc/ca-certificates", "/etc/crypto-policies",
}

var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// reachable returns the existing paths that the plugin may access.
func reachable(s *Spec) reach {
	r := reach{links: map[string]string{}}
	r.add(place{}, system...)
	r.add(place{write: true}, devices...)
	r.add(place{}, s.Path)
	r.add(place{}, s.Read...)
	r.add(place{write: true}, s.Write...)
	r.add(place{write: true}, s.Home, s.Work, s.Temp)
	r.add(place{write: true, socket: true}, s.Sockets)
	r.add(place{socket: true}, s.Services)
	slices.SortStableFunc(r.places, func(a, b place) int { return strings.Compare(a.path, b.path) })
	return r
}

func (r *reach) add(p place, paths ...string) {
	for _, path := range paths {
		if path == "" {
			continue
		}
		p.path = r.follow(path)
		if info, err := os.Stat(p.path); err == nil {
			p.folder = info.IsDir()
			r.places = append(r.places, p)
		}
	}
}

// follow returns a path without symbolic links. It records the links on the way, because a link may
// lie outside the places that the plugin sees.
func (r *reach) follow(path string) string {
	rest := strings.Split(path, "/")
	at := "/"
	for links := 0; len(rest) > 0 && links < 40; {
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		to, err := os.Readlink(next)
		if err != nil { // not a link; a later Stat finds whether it exists
			at = next
			continue
		}
		links++
		r.links[next] = to
		if filepath.IsAbs(to) {
			at = "/"
		}
		rest = append(strings.Split(to, "/"), rest...)
	}
	return at
}
