package transaction

import (
	"os"
	"os/exec"
	"testing"

	"github.com/racflow/racflow/plugins/store/milvus/internal/snapshot"
)

// endedProcess is the number of a process that is gone.
func endedProcess(t testing.TB) int {
	t.Helper()
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

func TestHasEnded(t *testing.T) {
	for name, test := range map[string]struct {
		claim snapshot.Claim
		want  bool
	}{
		"of a process here":      {snapshot.Claim{Machine: machine(), PID: os.Getppid()}, false},
		"of this process":        {snapshot.Claim{Machine: machine(), PID: os.Getpid()}, false},
		"of a process that died": {snapshot.Claim{Machine: machine(), PID: endedProcess(t)}, true},
		"of another machine":     {snapshot.Claim{Machine: "elsewhere", PID: endedProcess(t)}, false},
	} {
		if got := hasEnded(test.claim); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
