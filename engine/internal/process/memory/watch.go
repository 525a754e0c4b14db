package memory

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Watch measures processes from the first Add until Close.
type Watch struct {
	root  string // where the system lists processes
	self  int
	sleep func(time.Duration) <-chan time.Time
	warn  func(error) // reports what it cannot do

	mu      sync.Mutex
	total   Bound
	members map[*member]bool
	stop    chan struct{} // nil: it is not running
	done    chan struct{}
	warned  bool // it has warned that this process alone holds too much
}

// proc is the folder in which the system lists processes.
const proc = "/proc"

// table is a snapshot of all processes.
type table struct {
	root     string
	parents  map[int]int // by process id
	groups   map[int]int
	threads  map[int]int
	children map[int][]int
}

// readTable reads the list of processes.
func readTable(root string) (*table, error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, err
	}
	t := &table{root: root, parents: map[int]int{}, groups: map[int]int{}, threads: map[int]int{}, children: map[int][]int{}}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(root, e.Name(), "stat"))
		if err != nil {
			continue // the process has ended
		}
		// The process name, in parentheses, may contain anything.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 18 {
			continue
		}
		t.parents[pid], _ = strconv.Atoi(string(fields[1]))
		t.groups[pid], _ = strconv.Atoi(string(fields[2]))
		t.threads[pid], _ = strconv.Atoi(string(fields[17]))
		t.children[t.parents[pid]] = append(t.children[t.parents[pid]], pid)
	}
	if len(t.parents) == 0 {
		return nil, fmt.Errorf("%s shows no processes", root)
	}
	return t, nil
}

// family returns a process with all its descendants, the processes of its group, and, if it is
// kept, the children that its parent has adopted.
func (t *table) family(pid int, kept bool) []int {
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
	if parent, lives := t.parents[pid]; kept && lives {
		for _, child := range t.children[parent] {
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

// held returns the bytes that processes hold together, including page tables. Pages that several of
// them share count for each, unless exact is set and the system reports shares.
func (t *table) held(pids []int, exact bool) (sum int64) {
	for _, pid := range pids {
		dir, counted := filepath.Join(t.root, strconv.Itoa(pid)), []string{"VmPTE:", "HugetlbPages:"}
		var shares int64
		err := errors.ErrUnsupported
		if exact {
			shares, err = count(filepath.Join(dir, "smaps_rollup"), "Pss_Anon:", "Pss_Shmem:", "SwapPss:")
		}
		if err != nil {
			counted = append(counted, "RssAnon:", "RssShmem:", "VmSwap:")
		}
		n, _ := count(filepath.Join(dir, "status"), counted...) // the process may have ended
		sum += shares + n
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

// Every is how often a Watch measures memory. After a long measurement, the Watch pauses for ten
// times its duration, but at most longest. If no memory is bounded, it always pauses for longest. It
// looks at files every diskEvery, or after ten times as long as the last look took.
const (
	Every     = 200 * time.Millisecond
	longest   = time.Second
	diskEvery = 3 * time.Second
)

// Bound limits bytes and names the owner of the limit for people.
type Bound struct {
	Bytes int64  // 0: no limit
	Of    string // such as `memory of pipeline "p"`
}

// Limits bound a process with its descendants.
type Limits struct {
	Memory    Bound
	Processes int          // and threads; 0: no limit
	Disk      Bound        // of what Used returns
	Used      func() int64 // bytes in files
}

type member struct {
	Limits
	pid    int
	kept   bool // its parent adopts the children that it leaves behind
	end    func(reason error)
	ending bool      // end was called for it; the process may still run
	next   time.Time // when to look at its files
}

// NewWatch creates a Watch. It calls warn once if it cannot measure what processes hold, and once
// if ending a process would not help.
func NewWatch(warn func(error)) *Watch {
	return &Watch{root: proc, self: os.Getpid(), sleep: time.After, warn: warn, members: map[*member]bool{}}
}

// Total limits the memory that this process and all watched ones hold together. The largest watched
// process is ended first.
func (w *Watch) Total(b Bound) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.total = b
	w.begin()
}

// Add watches a process, and, if it is kept, the children that its parent adopts from it. It calls
// end once, from another goroutine, if the process has to end. Call remove after it has ended.
func (w *Watch) Add(pid int, kept bool, l Limits, end func(reason error)) (remove func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := &member{Limits: l, pid: pid, kept: kept, end: end}
	w.members[m] = true
	w.begin()
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.members, m)
	}
}

// begin starts to measure if there is a bound, and a process to watch.
func (w *Watch) begin() {
	bounded := w.total.Bytes > 0
	for m := range w.members {
		bounded = bounded || m.Memory.Bytes > 0 || m.Processes > 0 || m.Disk.Bytes > 0
	}
	if !bounded || w.stop != nil || len(w.members) == 0 {
		return
	}
	w.stop, w.done = make(chan struct{}), make(chan struct{})
	go w.run(w.stop, w.done)
}

// Close stops the Watch. Call it once.
func (w *Watch) Close() {
	w.mu.Lock()
	stop, done := w.stop, w.done
	w.mu.Unlock()
	if stop != nil {
		close(stop)
		<-done
	}
}

func (w *Watch) run(stop, done chan struct{}) {
	defer close(done)
	for {
		began := time.Now()
		every, err := w.pass()
		if err != nil {
			w.warn(fmt.Errorf("the memory of processes is not watched: %w", err))
			return
		}
		select {
		case <-w.sleep(min(max(every, 10*time.Since(began)), longest)):
		case <-stop:
			return
		}
	}
}

// family is a member, its descendants, and the bytes that they hold.
type family struct {
	*member
	pids  []int
	bytes int64
}

// pass measures once, and ends what exceeds its bound. It returns when to do so again.
func (w *Watch) pass() (every time.Duration, err error) {
	t, err := readTable(w.root)
	if err != nil {
		return 0, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	every = longest
	if w.total.Bytes > 0 {
		every = Every
	}
	var all []family
	for m := range w.members {
		f := family{member: m, pids: t.family(m.pid, m.kept)}
		if f.Memory.Bytes > 0 {
			every = Every
		}
		if f.Memory.Bytes > 0 || w.total.Bytes > 0 {
			f.bytes = t.held(f.pids, false)
		}
		if f.Memory.over(f.bytes) && len(f.pids) > 1 { // shared pages were counted several times
			f.bytes = t.held(f.pids, true)
		}
		threads := 0
		for _, pid := range f.pids {
			threads += t.threads[pid]
		}
		switch {
		case f.Memory.over(f.bytes):
			f.exceeds("%s %s, more than the %s of %s", holders(len(f.pids)), Size(f.bytes), Size(f.Memory.Bytes), f.Memory.Of)
		case f.Processes > 0 && threads > f.Processes:
			f.exceeds("it ran %d processes and threads, more than the %d that a plugin may", threads, f.Processes)
		case f.Disk.Bytes > 0 && !time.Now().Before(f.next):
			f.next = time.Now().Add(time.Hour) // one look at a time
			go w.files(m)
		}
		all = append(all, f)
	}
	if w.total.Bytes > 0 && len(all) > 0 {
		w.checkTotal(t, all)
	}
	return every, nil
}

// files looks at the files of a member. It does so without the lock, since there may be many files.
func (w *Watch) files(m *member) {
	began := time.Now()
	used := m.Used()
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.Disk.over(used) {
		m.exceeds("its folders hold %s, more than the %s of %s", Size(used), Size(m.Disk.Bytes), m.Disk.Of)
	}
	m.next = time.Now().Add(max(diskEvery, 10*time.Since(began)))
}

func (b Bound) over(bytes int64) bool { return b.Bytes > 0 && bytes > b.Bytes }

// exceeds ends a member that was not ended yet.
func (m *member) exceeds(format string, args ...any) {
	if !m.ending {
		m.ending = true
		go m.end(fmt.Errorf("racflow ended it, since "+format, args...))
	}
}

// checkTotal ends the largest process if all processes together hold too much. It ends one process at
// a time, because only then it is known how much memory that freed.
func (w *Watch) checkTotal(t *table, all []family) {
	own := t.held([]int{w.self}, false)
	for _, exact := range []bool{false, true} {
		sum := own
		for i, f := range all {
			all[i].bytes = t.held(f.pids, exact)
			sum += all[i].bytes
		}
		if sum <= w.total.Bytes || slices.ContainsFunc(all, func(f family) bool { return f.ending }) {
			return
		}
		if !exact {
			continue
		}
		if own > w.total.Bytes {
			if !w.warned {
				w.warned = true
				w.warn(fmt.Errorf("racflow itself holds %s, more than the %s of %s; raise that", Size(own), Size(w.total.Bytes), w.total.Of))
			}
			return
		}
		largest := slices.MaxFunc(all, func(a, b family) int { return cmp.Compare(a.bytes, b.bytes) })
		largest.exceeds("all processes of the run held %s together, more than the %s of %s; it was the largest, with %s",
			Size(sum), Size(w.total.Bytes), w.total.Of, Size(largest.bytes))
	}
}

func holders(n int) string {
	switch n {
	case 1:
		return "it held"
	case 2:
		return "it and a process that it started held"
	}
	return fmt.Sprintf("it and %d processes that it started held", n-1)
}
