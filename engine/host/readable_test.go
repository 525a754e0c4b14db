package host

import (
	"bufio"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// A process that is not dumpable is told from one that is, if it is not root's.
func TestReadable(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells")
	}
	uid := os.Getuid()
	for how, want := range map[string]bool{"open": true, "closed": false} {
		c := exec.Command("/proc/self/exe", how) // which another user may execute wherever it lies
		if os.Getuid() == 0 {
			uid = 65534
			c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		c.Dir = "/"
		stdin, err := c.StdinPipe()
		must.Do(t, err)
		out, err := c.StdoutPipe()
		must.Do(t, err)
		must.Do(t, c.Start())
		if !bufio.NewScanner(out).Scan() {
			t.Fatal("it does not start")
		}
		if got := isReadable(c.Process.Pid, uid); got != want {
			t.Errorf("%s: readable %v", how, got)
		}
		_ = stdin.Close()
		_ = c.Wait()
	}
	if isReadable(os.Getpid(), 0) {
		t.Error("of root's processes nothing is known")
	}
}
