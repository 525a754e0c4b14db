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

// endChildren ends all descendants. What a process leaves behind becomes a child of this one,
// so the children are all that has to be looked for, and as nobody else reaps them, no other
// process can have got the number of one.
func endChildren() {
	for {
		how := 0
		if killChildren() == 0 {
			how = unix.WNOHANG // none was there, and one may have come since
		}
		if _, err := unix.Wait4(-1, nil, how, nil); errors.Is(err, unix.ECHILD) {
			return
		}
	}
}

// killChildren kills the children that this process has now, and says how many.
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
		raw, _ := os.ReadFile(list) // of a thread that has ended meanwhile: it has none
		for _, field := range strings.Fields(string(raw)) {
			if pid, err := strconv.Atoi(field); err == nil {
				all = append(all, pid)
			}
		}
	}
	return all
}

// childrenByParent is for kernels that do not list the children of a process.
func childrenByParent() []int {
	var all []int
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is valid
	for _, path := range stats {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// PID (NAME) STATE PARENT: the name may hold anything, a parenthesis too.
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
