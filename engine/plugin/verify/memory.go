package verify

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/racflow/racflow/sdk/conformance"
)

// output asks for a thousand rows and looks at what was written meanwhile.
func (v *subject) output(t conformance.T) error {
	if v.Stage.Network {
		t.Skipf("a thousand rows may cost money at another machine")
	}
	l, r, err := v.load(t)
	if err != nil {
		return err
	}
	const rows = 1000
	before, bytesBefore, _ := r.said.soFar()
	if err := v.work(t, l, rows, func(int) {}); err != nil {
		return err
	}
	lines, bytes, stdout := r.said.soFar()
	if len(stdout) > 0 {
		return fmt.Errorf("it wrote to standard output: %.200q", stdout)
	}
	if lines, bytes = lines-before, bytes-bytesBefore; lines > rows/10 || bytes > 100*rows {
		return fmt.Errorf("it wrote %d lines, %d bytes, for %d rows", lines, bytes, rows)
	}
	return nil
}

// work asks for rows, each once, for at most half of a minute; seen gets how many there were.
func (v *subject) work(t conformance.T, l *conformance.Load, rows int, seen func(int)) error {
	end := time.Now().Add(30 * time.Second)
	for n := 0; n < rows && time.Now().Before(end); n += l.Batch() {
		if _, err := l.Rows(t.Context(), n, n+l.Batch()); err != nil {
			return fmt.Errorf("after %d rows: %w", n, err)
		}
		seen(n + l.Batch())
	}
	return nil
}

// What memory may grow by after the first half of the rows: a fourth, or this much, since
// collectors of garbage let it vary.
const slack = 16 << 20

// memory compares what the process has after the first half of many rows with what it has at the end.
func (v *subject) memory(t conformance.T) error {
	if v.Stage.Network {
		t.Skipf("%d rows may cost money at another machine", v.rows)
	}
	if runtime.GOOS != "linux" {
		t.Skipf("the memory of another process is known on Linux only")
	}
	l, r, err := v.load(t)
	if err != nil {
		return err
	}
	var resident []int64
	worked := 0
	err = v.work(t, l, v.rows, func(n int) { worked = n; resident = append(resident, residentOf(r.PID())) })
	if err != nil {
		return err
	}
	half := len(resident) / 2
	if half < 4 {
		t.Skipf("%d rows took half a minute: too few to see memory grow", worked)
	}
	warm, last := slices.Max(resident[:half]), slices.Min(resident[len(resident)-half/4-1:])
	if grown := last - warm; grown > max(slack, warm/4) {
		return fmt.Errorf("it had at most %d MiB in the first half of %d rows, and at least %d MiB at the end", warm>>20, worked, last>>20)
	}
	return nil
}

// residentOf is the memory in bytes of a process and of those that it has started.
func residentOf(pid int) (sum int64) {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	memory := map[int]int64{}
	for _, path := range stats {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// PID (NAME) STATE PPID ..., where a name may have anything in it
		fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
		if len(fields) < 22 {
			continue
		}
		number, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		parent, _ := strconv.Atoi(fields[1])
		pages, _ := strconv.ParseInt(fields[21], 10, 64)
		children[parent] = append(children[parent], number)
		memory[number] = pages * int64(os.Getpagesize())
	}
	for next := []int{pid}; len(next) > 0; next = next[1:] {
		sum += memory[next[0]]
		next = append(next, children[next[0]]...)
	}
	return sum
}
