package memory

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// proc is where the system tells of processes.
const proc = "/proc"

// table is a look at all processes.
type table struct {
	root     string
	parents  map[int]int // by process id
	groups   map[int]int
	children map[int][]int
}

// look reads which processes there are.
func look(root string) (*table, error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, err
	}
	t := &table{root: root, parents: map[int]int{}, groups: map[int]int{}, children: map[int][]int{}}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(root, e.Name(), "stat"))
		if err != nil {
			continue // it has ended
		}
		// The name, in parentheses, may hold anything.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 3 {
			continue
		}
		t.parents[pid], _ = strconv.Atoi(string(fields[1]))
		t.groups[pid], _ = strconv.Atoi(string(fields[2]))
		t.children[t.parents[pid]] = append(t.children[t.parents[pid]], pid)
	}
	if len(t.parents) == 0 {
		return nil, fmt.Errorf("%s shows no processes", root)
	}
	return t, nil
}

// family returns a process with all that descend from it, are in its group, or have become
// children of its keeper; 0: it has none.
func (t *table) family(pid, keeper int) []int {
	seen := map[int]bool{}
	var all []int
	var add func(int)
	add = func(p int) {
		if _, lives := t.parents[p]; !lives || seen[p] {
			return
		}
		seen[p] = true
		all = append(all, p)
		for _, child := range t.children[p] {
			add(child)
		}
	}
	add(pid)
	if keeper != 0 {
		for _, child := range t.children[keeper] {
			add(child)
		}
	}
	for p, group := range t.groups {
		if group == pid {
			add(p)
		}
	}
	return all
}

// held is what processes hold together, in bytes. Pages that several share count for each,
// unless exact is set and the system tells.
func (t *table) held(pids []int, exact bool) (sum int64) {
	for _, pid := range pids {
		dir := filepath.Join(t.root, strconv.Itoa(pid))
		if exact {
			if n, err := count(filepath.Join(dir, "smaps_rollup"), "Pss_Anon:", "Pss_Shmem:", "SwapPss:"); err == nil {
				sum += n
				continue
			}
		}
		n, _ := count(filepath.Join(dir, "status"), "RssAnon:", "RssShmem:", "VmSwap:") // it may have ended
		sum += n
	}
	return sum
}

// count adds up lines "NAME N kB" of a file, in bytes.
func count(path string, names ...string) (sum int64, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		for _, name := range names {
			if rest, ok := strings.CutPrefix(line, name); ok {
				n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
				if err != nil {
					return 0, err
				}
				sum += n << 10
			}
		}
	}
	return sum, nil
}
