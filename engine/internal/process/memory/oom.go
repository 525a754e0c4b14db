package memory

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Kills returns how many processes the kernel has ended so far for lack of memory, in this
// process's control group and those below it, or on the whole machine; false: unknown. The number
// only grows.
func Kills() (int64, bool) { return kills("/") }

func kills(root string) (int64, bool) {
	for _, path := range counters(root) {
		if n, err := counter(path); err == nil {
			return n, true
		}
	}
	return 0, false
}

// counters returns the files that may hold the number, best first.
func counters(root string) (all []string) {
	groups, _ := os.ReadFile(filepath.Join(root, proc, "self/cgroup"))
	for line := range strings.Lines(string(groups)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(part) != 3:
		case part[0] == "0":
			all = append(all, filepath.Join(root, "sys/fs/cgroup", part[2], "memory.events"))
		case part[1] == "memory":
			// Inside a container the group's own folder is at the top.
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

var (
	sizes = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?([KMGT]i?B)$`)
	units = map[string]float64{
		"KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
		"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
	}
)

// Least is the smallest bound in bytes: an idle stage holds half of it.
const Least = 32 << 20

// ParseSize parses a size such as 2GiB, 512MiB or 1.5GB into bytes.
func ParseSize(text string) (int64, error) {
	m := sizes.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf(`%q is not a size such as "512MiB" or "2GiB"`, text)
	}
	n, err := strconv.ParseFloat(m[1], 64)
	n *= units[m[2]]
	switch {
	case err != nil || n > math.MaxInt64/2:
		return 0, fmt.Errorf("%q is more than any machine has", text)
	case n < Least:
		return 0, fmt.Errorf("%q is less than any stage needs: at least %s", text, Size(Least))
	}
	return int64(n), nil
}

// Size formats bytes for people: 1.5 GiB.
func Size(bytes int64) string {
	for _, unit := range []string{"TiB", "GiB", "MiB"} {
		if n := float64(bytes) / units[unit]; n >= 1 || unit == "MiB" {
			return strconv.FormatFloat(n, 'f', 1, 64) + " " + unit
		}
	}
	return ""
}
