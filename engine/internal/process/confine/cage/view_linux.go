package cage

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// place is a file or folder that the plugin may access.
type place struct {
	path   string // without symbolic links
	folder bool
	write  bool
	device bool // it may be written to, but not changed
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
	r.add(place{write: true, device: true}, devices...)
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
	for _, name := range paths {
		if name == "" {
			continue
		}
		p.path = r.follow(name)
		if info, err := os.Stat(p.path); err == nil {
			p.folder = info.IsDir()
			r.places = append(r.places, p)
		}
	}
}

// follow returns a path without symbolic links. It records the links on the way, because a link may
// lie outside the places that the plugin sees.
func (r *reach) follow(name string) string {
	return Follow(name, func(link, to string) { r.links[link] = to })
}

// before is the mount point of the old root until the new one is complete.
const before = "/.before"

// enterView switches this process to a root file system that contains only the allowed places. It
// changes nothing if the system does not allow mounts. It notes in kernel what it could do.
func enterView(on string, r reach, kernel *Kernel) error {
	// Keep the following mounts out of the parent namespace.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil //nolint:nilerr // security modules of some systems forbid it
	}
	if err := unix.Mount("racflow", on, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=1m"); err != nil {
		return nil //nolint:nilerr // as above
	}
	err := os.Mkdir(path.Join(on, before), 0o700)
	if err == nil {
		err = unix.PivotRoot(on, path.Join(on, before))
	}
	if err != nil {
		return unix.Unmount(on, unix.MNT_DETACH) // such as in a chroot
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	kernel.View, kernel.ReadOnly = true, true
	var writable []place
	for i, p := range r.places {
		inside := covered(r.places[:i], p.path)
		if inside && (!p.write || covered(writable, p.path)) {
			continue
		}
		if err := show(p, inside, kernel); err != nil {
			return fmt.Errorf("show %s: %w", p.path, err)
		}
		if p.write {
			writable = append(writable, p)
		}
	}
	links := map[string]string{"/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0", "/dev/stdout": "/proc/self/fd/1", "/dev/stderr": "/proc/self/fd/2"}
	maps.Copy(links, r.links)
	for name, to := range links {
		if covered(r.places, name) {
			continue
		}
		if err := errors.Join(os.MkdirAll(path.Dir(name), 0o755), os.Symlink(to, name)); err != nil {
			return err
		}
	}
	if err := unix.Unmount(before, unix.MNT_DETACH); err != nil {
		return err
	}
	if err := os.Remove(before); err != nil {
		return err
	}
	const readOnly = unix.MS_REMOUNT | unix.MS_BIND | unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV
	return unix.Mount("", "/", "", readOnly, "")
}

// covered reports whether a path is in a mounted place, or is one. Its contents come from outside,
// so nothing may be created there.
func covered(mounted []place, path string) bool {
	return slices.ContainsFunc(mounted, func(m place) bool {
		return path == m.path || m.folder && strings.HasPrefix(path, m.path+"/")
	})
}

// mountPoint creates the mount point of a place. It opens no existing file.
func mountPoint(p place) error {
	if p.folder {
		return os.MkdirAll(p.path, 0o755)
	}
	if err := os.MkdirAll(path.Dir(p.path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(p.path, os.O_CREATE|os.O_EXCL|os.O_RDONLY, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// show mounts a place of the old root at its path in the new one, read-only unless it may be changed.
// inside: it lies in another place, which has the mount point.
func show(p place, inside bool, kernel *Kernel) error {
	if !inside {
		if err := mountPoint(p); err != nil {
			return err
		}
	}
	if p.path == "/proc" {
		// A proc for this namespace; the kernel refuses it if a container hides parts of /proc.
		err := unix.Mount("proc", p.path, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_RDONLY, "")
		if kernel.Proc = err == nil; kernel.Proc {
			return nil
		}
	}
	if err := unix.Mount(before+p.path, p.path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil || p.write && !p.device {
		return err
	}
	err := unix.MountSetattr(unix.AT_FDCWD, p.path, unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	if err == unix.ENOSYS { //nolint:errorlint // as the system call returns it
		kernel.ReadOnly, err = false, nil
	}
	return err
}
