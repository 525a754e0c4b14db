package confine

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// before is the mount point of the old root until the new one is complete.
const before = "/.before"

// enterView switches this process to a root file system that contains only the allowed places. It
// returns false, with nothing changed, if the system does not allow mounts.
func enterView(on string, r reach) (bool, error) {
	// Keep the following mounts out of the parent namespace.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return false, nil //nolint:nilerr // security modules of some systems forbid it
	}
	if err := unix.Mount("racflow", on, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=1m"); err != nil {
		return false, nil //nolint:nilerr // as above
	}
	err := os.Mkdir(filepath.Join(on, before), 0o700)
	if err == nil {
		err = unix.PivotRoot(on, filepath.Join(on, before))
	}
	if err != nil {
		return false, unix.Unmount(on, unix.MNT_DETACH) // such as in a chroot
	}
	if err := os.Chdir("/"); err != nil {
		return false, err
	}
	for i, p := range r.places {
		if covered(r.places[:i], p.path) {
			continue
		}
		if err := show(p); err != nil {
			return false, fmt.Errorf("show %s: %w", p.path, err)
		}
	}
	links := map[string]string{"/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0", "/dev/stdout": "/proc/self/fd/1", "/dev/stderr": "/proc/self/fd/2"}
	maps.Copy(links, r.links)
	for path, to := range links {
		if covered(r.places, path) {
			continue
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.Symlink(to, path)); err != nil {
			return false, err
		}
	}
	if err := unix.Unmount(before, unix.MNT_DETACH); err != nil {
		return false, err
	}
	if err := os.Remove(before); err != nil {
		return false, err
	}
	const readOnly = unix.MS_REMOUNT | unix.MS_BIND | unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV
	return true, unix.Mount("", "/", "", readOnly, "")
}

// covered reports whether a path is in a mounted place, or is one. Its contents come from outside,
// so nothing may be created there.
func covered(mounted []place, path string) bool {
	return slices.ContainsFunc(mounted, func(m place) bool {
		return path == m.path || m.folder && strings.HasPrefix(path, m.path+"/")
	})
}

// show mounts a place of the old root at its path in the new one. It creates the mount point and
// opens no existing file.
func show(p place) error {
	err := os.MkdirAll(filepath.Dir(p.path), 0o755)
	if err == nil && p.folder {
		err = os.MkdirAll(p.path, 0o755)
	} else if err == nil {
		var f *os.File
		if f, err = os.OpenFile(p.path, os.O_CREATE|os.O_EXCL|os.O_RDONLY, 0o600); err == nil {
			err = f.Close()
		}
	}
	if err != nil {
		return err
	}
	return unix.Mount(before+p.path, p.path, "", unix.MS_BIND|unix.MS_REC, "")
}
