package host

import (
	"fmt"
	"os"
	"syscall"

	"github.com/racflow/racflow/sdk/support"
)

// reportReadable warns, once, of a third party's plugin that leaves its memory open to other programs
// of the user: the secrets of its config come next.
func (p *Process) reportReadable(c *process) {
	if p.spec.Program == nil || p.spec.Debug || os.Getenv(support.NoDumpVariable) == "1" || !isReadable(c.running.plugin(), os.Getuid()) {
		return
	}
	p.readable.Do(func() {
		p.out.log.Warn("the plugin's memory and environment are open to other programs of this user, and with them the secrets of its config; " +
			"its author can close them: prctl(PR_SET_DUMPABLE, 0), which a current SDK calls")
	})
}

// isReadable reports whether other processes of a user may read the memory of one of the user's. As far as
// the system tells: Linux gives the files of a process that is not dumpable to root. So of
// root's own processes nothing is known, and root may read all of them anyway.
func isReadable(pid, uid int) bool {
	info, err := os.Stat(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil || uid == 0 {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == uid
}
