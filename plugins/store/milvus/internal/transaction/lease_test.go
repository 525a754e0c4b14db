package transaction

import (
	"os"
	"os/exec"
	"testing"
	"time"
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

func TestLease(t *testing.T) {
	soon := time.Now().Add(time.Minute).Unix()
	for name, test := range map[string]struct {
		lease lease
		free  bool
	}{
		"never taken":            {lease{}, true},
		"released":               {lease{Until: soon}, true},
		"ended":                  {lease{Holder: "x", Until: soon - 120}, true},
		"of a process here":      {lease{Holder: "x", Machine: machine(), PID: os.Getppid(), Until: soon}, false},
		"of this process":        {lease{Holder: "x", Machine: machine(), PID: os.Getpid(), Until: soon}, false},
		"of a process that died": {lease{Holder: "x", Machine: machine(), PID: endedProcess(t), Until: soon}, true},
		"of another machine":     {lease{Holder: "x", Machine: "elsewhere", PID: endedProcess(t), Until: soon}, false},
	} {
		if err := test.lease.free(); (err == nil) != test.free {
			t.Errorf("%s: %v", name, err)
		}
	}
}
