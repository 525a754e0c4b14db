package memory

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]string{ // a formatted size, or a part of the error
		"2GiB": "2.0 GiB", "512MiB": "512.0 MiB", "1.5GiB": "1.5 GiB", "2 GB": "1.9 GiB", "1TiB": "1.0 TiB", "65536KiB": "64.0 MiB", "32MiB": "32.0 MiB",
		"2": "is not a size", "2G": "is not a size", "-1GiB": "is not a size", "2gib": "is not a size", "": "is not a size", "1e3GiB": "is not a size",
		"31MiB": "at least 32.0 MiB", "0GiB": "at least 32.0 MiB", "99999999999TiB": "more than any machine has",
	} {
		n, err := ParseSize(text)
		if err != nil {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %s", text, err, want)
			}
		} else if got := Size(n); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// machine is a folder like /proc.
type machine struct {
	t   *testing.T
	dir string
}

// has adds a process with its memory in MiB: its own pages, and its share of common pages.
func (m machine) has(pid, parent, group, anonymous, share int) {
	dir := filepath.Join(m.dir, fmt.Sprint(pid))
	files := map[string]string{
		"stat":   fmt.Sprintf("%d (a) ) b) S %d %d 0 0 0 0 0 0 0 0 0 0 0 0 0 0 3 0", pid, parent, group),
		"status": fmt.Sprintf("Name:\tx\nVmRSS:\t999999999 kB\nRssAnon:\t%d kB\nRssFile:\t888888 kB\nRssShmem:\t1024 kB\nVmPTE:\t512 kB\nVmSwap:\t1024 kB\nHugetlbPages:\t512 kB\n", (anonymous-3)<<10),
	}
	if share > 0 {
		files["smaps_rollup"] = fmt.Sprintf("Rss: 99999 kB\nPss: 77777 kB\nPss_Anon: %d kB\nPss_Shmem: 0 kB\nSwapPss: 0 kB\n", (share-1)<<10)
	}
	for name, text := range files {
		must.Do(m.t, os.MkdirAll(dir, 0o700))
		must.Do(m.t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
}

// TestWatch measures machines and checks who is ended, and why.
func TestWatch(t *testing.T) {
	const mib = 1 << 20
	for _, test := range []struct {
		name      string
		processes [][5]int // pid, parent, group, memory, its share of common pages
		bounds    map[int]int
		total     int
		want      map[int]string
		warned    string
	}{
		{"within", [][5]int{{10, 1, 10, 100, 0}}, map[int]int{10: 100}, 0, nil, ""},
		{"over", [][5]int{{10, 1, 10, 101, 0}, {20, 1, 20, 900, 0}}, map[int]int{10: 100, 20: 1000}, 0, map[int]string{
			10: "racflow ended it, since it held 101.0 MiB, more than the 100.0 MiB of memory of 10"}, ""},
		{"not bounded", [][5]int{{10, 1, 10, 1 << 14, 0}, {20, 1, 20, 3, 0}}, map[int]int{10: 0, 20: 50}, 0, nil, ""},
		{"a child and one of its own", [][5]int{{10, 1, 10, 40, 0}, {11, 10, 11, 40, 0}, {12, 11, 12, 40, 0}}, map[int]int{10: 100}, 0, map[int]string{
			10: "it and 2 processes that it started held 120.0 MiB"}, ""},
		{"an orphan of its group", [][5]int{{10, 1, 10, 40, 0}, {11, 1, 10, 70, 0}}, map[int]int{10: 100}, 0, map[int]string{10: "it and a process that it started held 110.0 MiB"}, ""},
		{"somebody else's", [][5]int{{10, 1, 10, 40, 0}, {11, 1, 11, 70, 0}}, map[int]int{10: 100}, 0, nil, ""},
		{"forked, sharing all", [][5]int{{10, 1, 10, 80, 40}, {11, 10, 10, 80, 40}}, map[int]int{10: 100}, 0, nil, ""},
		{"forked, sharing little", [][5]int{{10, 1, 10, 80, 60}, {11, 10, 10, 80, 60}}, map[int]int{10: 100}, 0, map[int]string{10: "held 120.0 MiB"}, ""},
		{"the largest of a run", [][5]int{{10, 1, 10, 100, 0}, {20, 1, 20, 60, 0}, {21, 20, 20, 60, 0}, {99, 1, 99, 50, 0}}, map[int]int{10: 0, 20: 0}, 250, map[int]string{
			20: "racflow ended it, since all processes of the run held 270.0 MiB together, more than the 250.0 MiB of memory of the run; it was the largest, with 120.0 MiB"}, ""},
		{"a run that shares", [][5]int{{10, 1, 10, 100, 60}, {11, 10, 10, 100, 60}, {99, 1, 99, 50, 0}}, map[int]int{10: 0}, 200, nil, ""},
		{"one over its own bound goes first", [][5]int{{10, 1, 10, 300, 0}, {20, 1, 20, 40, 0}, {99, 1, 99, 50, 0}}, map[int]int{10: 0, 20: 35}, 250, map[int]string{20: "it held 40.0 MiB"}, ""},
		{"racflow itself", [][5]int{{10, 1, 10, 40, 0}, {99, 1, 99, 300, 0}}, map[int]int{10: 0}, 250, nil, "racflow itself holds 300.0 MiB"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := machine{t, t.TempDir()}
			for _, p := range test.processes {
				m.has(p[0], p[1], p[2], p[3], p[4])
			}
			type end struct {
				pid int
				why string
			}
			ends := make(chan end, 10)
			warned := ""
			w := NewWatch(func(err error) { warned += err.Error() })
			w.root, w.self, w.total = m.dir, 99, Bound{int64(test.total) * mib, "memory of the run"}
			for pid, bound := range test.bounds {
				w.members[&member{pid: pid, Limits: Limits{Memory: Bound{int64(bound) * mib, fmt.Sprint("memory of ", pid)}}, end: func(err error) { ends <- end{pid, err.Error()} }}] = true
			}
			for range 3 { // an ended process is not ended again
				_, err := w.pass()
				must.Do(t, err)
			}
			for range test.want {
				e := <-ends
				if test.want[e.pid] == "" || !strings.Contains(e.why, test.want[e.pid]) {
					t.Errorf("%d was ended: %s; want %q", e.pid, e.why, test.want[e.pid])
				}
			}
			for member := range w.members {
				if member.ending != (test.want[member.pid] != "") {
					t.Errorf("%d is ended: %v", member.pid, member.ending)
				}
			}
			if !strings.Contains(warned, test.warned) || (warned == "") != (test.warned == "") || strings.Count(warned, "itself") > 1 {
				t.Errorf("warned: %s", warned)
			}
		})
	}
}

// TestLimits: a member with too many processes or files is ended once, with the reason.
func TestLimits(t *testing.T) {
	m := machine{t, t.TempDir()}
	m.has(9, 1, 9, 50, 0)   // the launcher
	m.has(10, 9, 10, 50, 0) // each process has three threads
	m.has(11, 9, 11, 50, 0) // an orphan
	for name, c := range map[string]struct {
		kept   bool
		limits Limits
		want   string // part of the reason; empty: nobody is ended
	}{
		"few":              {true, Limits{Processes: 6}, ""},
		"too many":         {true, Limits{Processes: 5}, "since it ran 6 processes and threads, more than the 5"},
		"not its own":      {false, Limits{Processes: 5}, ""},
		"little":           {true, Limits{Disk: Bound{2 << 20, "x"}, Used: func() int64 { return 2 << 20 }}, ""},
		"too much":         {true, Limits{Disk: Bound{2 << 20, "disk of x"}, Used: func() int64 { return 3 << 20 }}, "hold 3.0 MiB, more than the 2.0 MiB of disk of x"},
		"one of them only": {true, Limits{Processes: 5, Memory: Bound{1 << 20, "x"}}, "more than the 1.0 MiB"},
	} {
		ends := make(chan string, 3)
		w := NewWatch(nil)
		w.root = m.dir
		one := &member{pid: 10, kept: c.kept, Limits: c.limits, end: func(err error) { ends <- err.Error() }}
		w.members[one] = true
		_, err := w.pass()
		must.Do(t, err)
		if c.limits.Used != nil {
			w.files(one)
		}
		if one.ending != (c.want != "") {
			t.Errorf("%s: ended: %v", name, one.ending)
		} else if one.ending {
			if why := <-ends; !strings.Contains(why, c.want) {
				t.Errorf("%s: %s", name, why)
			}
		}
	}
}

// A watch measures as often as its clock says, until it is closed, and warns once if it cannot
// measure.
func TestClock(t *testing.T) {
	m := machine{t, t.TempDir()}
	m.has(10, 1, 10, 60, 0)
	warned := make(chan error, 10)
	w := NewWatch(func(err error) { warned <- err })
	slept, wake := make(chan time.Duration), make(chan time.Time)
	w.root, w.sleep = m.dir, func(d time.Duration) <-chan time.Time { slept <- d; return wake }
	ended := make(chan error, 10)
	remove := w.Add(10, false, Limits{Memory: Bound{100 << 20, "x"}}, func(err error) { ended <- err })
	if d := <-slept; d < Every || len(ended) > 0 {
		t.Errorf("the first look was followed by %v", d)
	}
	m.has(10, 1, 10, 101, 0)
	wake <- time.Time{}
	<-ended
	<-slept
	remove()
	must.Do(t, os.RemoveAll(m.dir))
	wake <- time.Time{}
	if err := <-warned; !strings.Contains(err.Error(), "not watched") {
		t.Error(err)
	}
	w.Close()
	unbounded := NewWatch(nil)
	unbounded.root = m.dir
	unbounded.Add(10, false, Limits{}, nil)
	unbounded.Close() // it never began
	if unbounded.stop != nil {
		t.Error("nothing is bounded, and it watches")
	}
}

// TestReal measures processes of this machine.
func TestReal(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells what processes hold")
	}
	if size := os.Getenv("HOLD"); size != "" {
		hold(size)
		return
	}
	self, err := os.Executable()
	must.Do(t, err)
	c := exec.Command(self, "-test.run=TestReal$")
	c.Env = append(os.Environ(), "HOLD=outer")
	stdin, err := c.StdinPipe()
	must.Do(t, err)
	out, err := c.StdoutPipe()
	must.Do(t, err)
	must.Do(t, c.Start())
	lines := bufio.NewScanner(out)
	for range 2 { // the process and its child
		if !lines.Scan() {
			t.Fatal("it does not hold anything")
		}
	}
	table, err := readTable(proc)
	must.Do(t, err)
	family := table.family(c.Process.Pid, false)
	for _, exact := range []bool{false, true} {
		if n := table.held(family, exact); len(family) != 2 || n < 96<<20 || n > 512<<20 { // the race detector takes much of that
			t.Errorf("%d processes hold %s, want 2 that hold 96 MiB and what they run with", len(family), Size(n))
		}
	}
	_ = stdin.Close()
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}

// hold holds 48 MiB until its standard input ends, and so does its child.
func hold(which string) {
	pages := make([]byte, 48<<20)
	for i := range pages {
		pages[i] = byte(i)
	}
	if which == "outer" {
		c := exec.Command(os.Args[0], "-test.run=TestReal$") //nolint:gosec // this program
		c.Env, c.Stdin, c.Stdout = append(os.Environ(), "HOLD=inner"), os.Stdin, os.Stdout
		if err := c.Start(); err != nil {
			panic(err)
		}
		defer c.Wait() //nolint:errcheck // it ends with its standard input
	}
	fmt.Println("holding")
	_, _ = os.Stdin.Read(make([]byte, 1))
	runtime.KeepAlive(pages)
}
