//go:build linux

package cli

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/racflow/racflow/engine/internal/process/confine"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/serve"
)

// spied is the pattern that the spy looks for. It does not match itself: every process of the test
// binary contains it.
var spied = regexp.MustCompile(`sk-spied-[0-9]{12}`)

// spyPlugin is the main function of a third-party plugin that reads as much as it can of racflow's
// process and of other stages; see TestMain.
func spyPlugin() {
	stage := sdk.SampleStage("voter", "", func(context.Context, sdk.Setup, struct{}) (sdk.Sampler, error) { return spy{}, nil })
	serve.Plugin(sdk.Plugin{Name: "spy", Version: "0.1.0", Stages: []sdk.Stage{stage}})
}

func init() { programs["racflow-plugin-spy"] = spyPlugin }

type spy struct{}

func (spy) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	host := parentOf(os.Getppid()) // between them is this plugin's launcher
	found := []string{"host" + spyOn(host)}
	below := childrenOf(host)
	for i := 0; i < len(below); i++ {
		below = append(below, childrenOf(below[i])...)
		if line := readProc(below[i], "cmdline"); strings.Contains(line, "leak") && !strings.Contains(line, "confine") {
			found = append(found, "stage"+spyOn(below[i]))
		}
	}
	out := make([][]sdk.Sample, len(b.Items))
	for i := range out {
		out[i] = []sdk.Sample{{Answers: []sdk.Answer{{Label: strings.Join(found, " "), Weight: 1}}}}
	}
	return out, nil
}

func parentOf(pid int) int {
	_, rest, _ := strings.Cut(readProc(pid, "stat"), ") ")
	var state string
	var parent int
	_, _ = fmt.Sscan(rest, &state, &parent) // 0: the process has ended
	return parent
}

// spyOn reports whether a process shows the key in its start environment, and in its memory.
func spyOn(pid int) string {
	return fmt.Sprintf(":environ=%v,mem=%v", spied.MatchString(readProc(pid, "environ")), spyOnMemory(pid))
}

func spyOnMemory(pid int) bool {
	maps, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return false
	}
	defer maps.Close()
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return false
	}
	defer mem.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		field := strings.Fields(lines.Text())
		low, high, _ := strings.Cut(field[0], "-")
		begin, _ := strconv.ParseInt(low, 16, 64)
		end, _ := strconv.ParseInt(high, 16, 64)
		if !strings.HasPrefix(field[1], "rw") || end-begin > 1<<28 {
			continue
		}
		content := make([]byte, end-begin)
		n, _ := mem.ReadAt(content, begin)
		if spied.Match(content[:n]) {
			return true
		}
	}
	return false
}

const spyFile = `
knowledge "k" {
  source { path = "rows.tsv" }
  embed { use = "hashing" }
  store { use = "local" }
}
pipeline "p" {
  input { path = "rows.tsv" }
  retrieve "near" { from = knowledge.k }
  sample "owner" {
    use = "leak/voter"
    config {
      key   = secret("SPIED_KEY")
      token = "none"
      how   = "quiet"
    }
  }
  sample "spy" { use = "spy/voter" }
  elect "e" { use = "soft" }
}
`

// TestNoStageReadsAnotherProcess runs a spy beside a stage with a key, as a user who is not root:
// root can read everything.
func TestNoStageReadsAnotherProcess(t *testing.T) {
	leaveTo(t, "command", "it is a run for each stage")
	user := &syscall.Credential{Uid: uint32(os.Getuid()), Gid: uint32(os.Getgid())}
	if user.Uid == 0 {
		user = &syscall.Credential{Uid: 65534, Gid: 65534}
		probe := exec.Command("true")
		probe.SysProcAttr = &syscall.SysProcAttr{Credential: user}
		if err := probe.Run(); err != nil {
			t.Skipf("this test needs a user who is not root, and root may not become one here: %v", err)
		}
	}
	// If the Yama module separates processes, memory is not readable anyway.
	scope, _ := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
	memory := len(scope) == 0 || scope[0] == '0'
	dir, err := os.MkdirTemp("", "spy") // only root can read the folder above t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"racflow": self, "p.hcl": nil, "rows.tsv": []byte(rows(3))} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, plugin := range []string{"leak", "spy"} {
		// Descriptions are stored by the hash of the program, so these two must differ.
		self = append(self, plugin...)
		if err := os.WriteFile(filepath.Join(dir, "racflow-plugin-"+plugin), self, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(dir, int(user.Uid), int(user.Gid)); err != nil {
		t.Fatal(err)
	}
	const noHost = "host:environ=false,mem=false" // a confined plugin may see no other processes at all
	const nothing = noHost + " stage:environ=false,mem=false"
	scoped := confine.Probe().Landlock > 0
	for _, test := range []struct{ dumpable, confined, want string }{
		{"", "true", noHost},
		{"", "false", nothing},
		// The same spy finds the key if processes stay readable.
		{"1", "false", fmt.Sprintf("host:environ=true,mem=%v stage:environ=false,mem=%[1]v", memory)},
		{"1", "true", noHost},
	} {
		if test.dumpable == "1" && test.confined == "true" && !scoped {
			continue // only Landlock keeps it away from them
		}
		file := spyFile + "required_plugins {\n  spy = { confined = " + test.confined + " }\n}\n"
		if err := os.WriteFile(filepath.Join(dir, "p.hcl"), []byte(file), 0o644); err != nil {
			t.Fatal(err)
		}
		c := exec.Command(filepath.Join(dir, "racflow"), "run", "--plugins", ".", "p.hcl")
		c.Dir = dir
		c.SysProcAttr = &syscall.SysProcAttr{Credential: user}
		c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "SPIED_KEY=sk-spied-" + strings.Repeat("4711", 3), "RACFLOW_DUMPABLE=" + test.dumpable, trustVariable + "=all"}
		if out, stderr := good(t, c); !strings.Contains(out, test.want) || test.confined == "true" && strings.Contains(out, "=true") {
			t.Errorf("RACFLOW_DUMPABLE=%s, confined %s: want %s\n%s\n%s", test.dumpable, test.confined, test.want, out, stderr)
		}
	}
}
