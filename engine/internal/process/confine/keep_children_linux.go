package confine

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// endChildren ends all descendants. The orphans of a process become children of this one, so it
// only has to look for its children. Only this process reaps them, so their process ids cannot be
// reused.
func endChildren() {
	for {
		how := 0
		if killChildren() == 0 {
			how = unix.WNOHANG // there was no child, but one may have come since
		}
		if _, err := unix.Wait4(-1, nil, how, nil); errors.Is(err, unix.ECHILD) {
			return
		}
	}
}

// killChildren kills the current children of this process and returns their number.
func killChildren() int {
	all := children()
	for _, pid := range all {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	return len(all)
}

func children() []int {
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil || len(lists) == 0 {
		return childrenByParent()
	}
	var all []int
	for _, list := range lists {
		raw, _ := os.ReadFile(list) // the thread may have ended; then it has no children
		for _, field := range strings.Fields(string(raw)) {
			if pid, err := strconv.Atoi(field); err == nil {
				all = append(all, pid)
			}
		}
	}
	return all
}

// childrenByParent serves kernels that do not list the children of a process.
func childrenByParent() []int {
	var all []int
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is valid
	for _, path := range stats {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// PID (NAME) STATE PARENT: the name may contain anything, even a parenthesis.
		fields := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:])
		if len(fields) < 2 || string(fields[1]) != strconv.Itoa(os.Getpid()) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			all = append(all, pid)
		}
	}
	return all
}
