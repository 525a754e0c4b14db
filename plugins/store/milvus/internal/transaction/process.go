package transaction

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/racflow/racflow/plugins/store/milvus/internal/snapshot"
)

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}

// machine names the machine, and the container on it, that process ids belong to.
func machine() string {
	parts := []string{hostname(), runtime.GOOS}
	if id, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		parts = append(parts, strings.TrimSpace(string(id)))
	}
	if space, err := os.Readlink("/proc/self/ns/pid"); err == nil {
		parts = append(parts, space)
	}
	return strings.Join(parts, " ")
}

// hasEnded reports that the process of a claim is gone; false where that cannot be
// known, as of other machines.
func hasEnded(c snapshot.Claim) bool {
	if _, err := os.Stat("/proc/self"); err != nil || c.Machine != machine() {
		return false
	}
	_, err := os.Stat(fmt.Sprintf("/proc/%d", c.PID))
	return errors.Is(err, os.ErrNotExist)
}
