//go:build linux

package cli

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	usage "github.com/racflow/racflow/sdk/sdktest/must"
)

// The most that loading any file may take. The time is processor time: other work on the machine does
// not count.
const (
	mostLoading = 2 * time.Second
	mostLoaded  = 200 << 20 // bytes of memory at a time
)

// peakFile is the file in which a measured process leaves its peak memory.
const peakFile = "peak"

// measured is racflow, and leaves its peak memory in a file. Its parent cannot ask for that: the
// kernel also counts what the parent held when it started the process.
func measured() {
	code := execute(interruptible(), os.Args[1:])
	status, err := os.ReadFile("/proc/self/status")
	if err == nil {
		err = os.WriteFile(peakFile, status, 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// peak returns the peak memory of a measured process in bytes.
func peak(t *testing.T, dir string) int {
	t.Helper()
	return usage.Size(t, readFile(t, dir, peakFile), "VmHWM")
}

// busy returns the processor time of a process that has ended.
func busy(c *exec.Cmd) time.Duration { return c.ProcessState.UserTime() + c.ProcessState.SystemTime() }

// chained returns locals, each made from the previous one.
func chained(n int, first, next string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "locals {\n  a0 = %s\n", first)
	for i := range n {
		fmt.Fprintf(&b, "  a%d = %s\n", i+1, strings.ReplaceAll(next, "#", fmt.Sprintf("local.a%d", i)))
	}
	return b.String() + "}\n"
}

// TestLoadingIsBounded gives verbs files that would take minutes and gigabytes. Each verb says at
// once where the problem is and what to do.
func TestLoadingIsBounded(t *testing.T) {
	again, mega := strings.Repeat, 1<<20
	if testing.Short() { // checks the messages only, not time and memory
		mega = 16 << 10
	}
	const exponential = `"${#}${#}"`
	ten := `[` + again("1,", 10) + `]`
	loops := "locals {\n  l = " + ten + "\n  a = " + again("[for x in local.l: ", 12) + "x" + again("]", 12) + "\n}\n"
	for name, test := range map[string]struct {
		file, vars string // p.hcl, v.hclvars
		args       string // instead of validate p.hcl
		want       []string
	}{
		"exponential texts": {file: chained(20, `"`+again("x", 16)+`"`, exponential), want: []string{"p.hcl:20:", "at most 16 MiB", "Build less here"}},
		"exponential lists": {file: chained(20, `["x"]`, "concat(#, #, #, #)"), want: []string{"p.hcl:", "at most 16 MiB", "Build less here"}},
		"nested loops":      {file: loops, want: []string{"p.hcl:3:", "at most 16 MiB", "Build less here"}},
		"a long heredoc":    {file: "locals {\n  a = <<E\n" + again(again("x", 99)+"\n", mega) + "E\n}\n", want: []string{"p.hcl:1:1", "at most 256 KiB", "files of their own"}},
		"a long text":       {file: "locals {\n  a = \"" + again("x", 100*mega) + "\"\n}\n", want: []string{"p.hcl:1:1", "files of their own"}},
		"a million blocks":  {file: numbered(mega, "knowledge \"k%d\" {}\n"), want: []string{"p.hcl:1:1", "at most 256 KiB"}},
		"many errors":       {file: numbered(20_000, "a%d = 1\n"), want: []string{"p.hcl:1:1", "p.hcl:100:1", "Only the first 100 are shown"}},
		"deep nesting":      {file: "locals {\n  a = " + again("[", 30_000) + again("]", 30_000) + "\n}\n", want: []string{"p.hcl:2:", "stand in each other", "names of their own"}},
		"a costly pattern":  {file: "locals {\n  a = regex(\"(a?){900}a{900}\", \"" + again("a", 100_000) + "\")\n}\n", want: []string{"p.hcl:2:", "a simpler pattern"}},
		"a file of variables": {file: "variable \"v\" {}\n", vars: "v = \"" + again("x", 50*mega) + "\"\n", args: "validate -var-file v.hclvars p.hcl",
			want: []string{"v.hclvars:1:1", "files of their own"}},
		"a value": {file: "variable \"v\" { type = list(string) }\n", args: "validate -var v=[" + again("1,", 60_000) + "] p.hcl", want: []string{"Wrong type at p.hcl:1:1", "…"}},
		"fmt":     {file: "a = " + again("(", 30_000), args: "fmt p.hcl", want: []string{"p.hcl:1:", "stand in each other"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, map[string]string{"p.hcl": test.file, "v.hclvars": test.vars})
			if test.args == "" {
				test.args = "validate p.hcl"
			}
			path, err := exec.LookPath("racflow-measured")
			if err != nil {
				t.Fatal(err)
			}
			c := exec.Command(path, strings.Fields(test.args)...)
			c.Dir = dir
			code, _, stderr := ran(t, c)
			if code != exitFailed {
				t.Errorf("exit code %d", code)
			}
			for _, want := range test.want {
				if !strings.Contains(strings.Join(strings.Fields(stderr), " "), strings.TrimSpace(want)) {
					t.Errorf("no %q in\n%.2000s", want, stderr)
				}
			}
			if len(stderr) > 100<<10 {
				t.Errorf("%d KiB are printed", len(stderr)>>10)
			}
			held, took := peak(t, dir), busy(c)
			if testing.Short() {
				return
			}
			if t.Logf("%v, %d MiB", took, held>>20); took > mostLoading || held > mostLoaded {
				t.Errorf("it took %v and %d MiB", took, held>>20)
			}
		})
	}
}
