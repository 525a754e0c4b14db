package memory

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Kills is how many processes the kernel has ended so far for lack of memory: of the control group
// of this process and those below it, or of the whole machine; false: it does not tell. They
// only ever grow.
func Kills() (int64, bool) { return kills("/") }

func kills(root string) (int64, bool) {
	for _, path := range counters(root) {
		if n, err := counter(path); err == nil {
			return n, true
		}
	}
	return 0, false
}

// counters are the files that may hold the number, best first.
func counters(root string) (all []string) {
	groups, _ := os.ReadFile(filepath.Join(root, proc, "self/cgroup"))
	for line := range strings.Lines(string(groups)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(part) != 3:
		case part[0] == "0":
			all = append(all, filepath.Join(root, "sys/fs/cgroup", part[2], "memory.events"))
		case part[1] == "memory":
			// Within a container the group's own folder is at the top.
			all = append(all, filepath.Join(root, "sys/fs/cgroup/memory", part[2], "memory.oom_control"), filepath.Join(root, "sys/fs/cgroup/memory/memory.oom_control"))
		}
	}
	return append(all, filepath.Join(root, proc, "vmstat"))
}

func counter(path string) (int64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "oom_kill "); ok {
			return strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
		}
	}
	return 0, errors.New("it has no such counter")
}
