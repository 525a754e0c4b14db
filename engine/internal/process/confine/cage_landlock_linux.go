package confine

import (
	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

// landlockVersion returns the version of the kernel's Landlock interface; 0: it has none.
func landlockVersion() int {
	version, _, err := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if err != 0 {
		return 0
	}
	return int(version)
}

// restrict limits this process to the files of r, to signals between its own processes, and, unless
// its network is isolated, to TCP connections to the given ports of any address.
func restrict(r reach, isolated bool, ports []uint16) error {
	refer := landlockVersion() >= 2 // the library enforces nothing if this is requested but missing
	var rules []landlock.Rule
	for _, p := range r.places {
		var rule landlock.FSRule
		switch {
		case p.folder && p.write:
			rule = landlock.RWDirs(p.path)
			if refer {
				rule = rule.WithRefer()
			}
		case p.folder:
			rule = landlock.RODirs(p.path)
		case p.write:
			rule = landlock.RWFiles(p.path).WithIoctlDev()
		default:
			rule = landlock.ROFiles(p.path)
		}
		if p.socket {
			rule = rule.WithResolveUnix()
		}
		rules = append(rules, rule.IgnoreIfMissing())
	}
	all := landlock.V11
	handled := []any{all.HandledAccessFS, all.Scoped}
	if !isolated {
		handled = append(handled, all.HandledAccessNet)
		for _, port := range ports {
			rules = append(rules, landlock.ConnectTCP(port))
		}
	}
	return landlock.MustConfig(handled...).BestEffort().Restrict(rules...)
}
