//go:build linux

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// withoutLocks names the variable with the error that flock returns in a process of the tests and in
// its children.
const withoutLocks = "RACFLOW_TEST_FLOCK"

func init() {
	number, err := strconv.Atoi(os.Getenv(withoutLocks))
	if err != nil {
		return
	}
	filter := []unix.SockFilter{ // the number of the system call; flock, or skip one; fail; allow
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_FLOCK},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(number)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread() // the flag of the last call applies the filter to all threads
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		panic(err)
	}
	if _, _, err := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program))); err != 0 {
		panic(err)
	}
}

// TestNoLocks: if the file system does not lock files, every command that writes says so and what to
// do. If the user allows it, the command runs, with its stages.
func TestNoLocks(t *testing.T) {
	command := func(dir string, errno syscall.Errno, nolock string, args ...string) (int, string) {
		c := racflow(t, dir, args...)
		c.Env = append(os.Environ(), fmt.Sprintf("%s=%d", withoutLocks, errno), "RACFLOW_NOLOCK="+nolock)
		code, stdout, stderr := ran(t, c)
		return code, stdout + stderr
	}
	file := strings.TrimSuffix(servedFile, "}\n") + "  sample \"neighbours\" { use = \"neighbours\" }\n  elect \"e\" { use = \"majority\" }\n}\n"
	dir := folder(t, map[string]string{"good.hcl": file, "rows.tsv": "text\tlabel\nred apple\tfruit\nold bus\tcar\n", "items.tsv": "text\nred apple\n"})
	run := []string{"run", "--input", "items.tsv", "good.hcl"}
	for _, errno := range []syscall.Errno{syscall.ENOLCK, syscall.ENOSYS, syscall.EOPNOTSUPP} {
		code, said := command(dir, errno, "", append(run, "--output", "out.jsonl")...)
		if code != 1 || !strings.Contains(said, "racflow: out.jsonl cannot be written: ") || !strings.Contains(said, "this file system does not lock files") || !strings.Contains(said, "RACFLOW_NOLOCK=1") {
			t.Errorf("%v: exit code %d, %s", errno, code, said)
		}
	}
	if code, said := command(dir, syscall.ENOLCK, "", run...); code != 1 || !strings.Contains(said, "RACFLOW_NOLOCK=1") {
		t.Errorf("without an output: exit code %d, %s", code, said)
	}
	for _, output := range []string{"out.jsonl", "again.jsonl"} { // the second run finds the files of the first
		code, said := command(dir, syscall.ENOLCK, "1", append(run, "--output", output)...)
		if answers, err := os.ReadFile(filepath.Join(dir, output)); err != nil || code != 0 || !strings.Contains(string(answers), `"answer":"fruit"`) {
			t.Errorf("exit code %d, %s%s", code, said, answers)
		}
	}
	for _, args := range [][]string{{"runs", "list"}, {"runs", "remove", "run-000001"}, {"cache", "clear"}} {
		if code, said := command(dir, syscall.ENOLCK, "1", args...); code != 0 {
			t.Errorf("%s: exit code %d, %s", args, code, said)
		}
	}
}
