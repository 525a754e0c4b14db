//go:build linux

package confine

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkStart is what the start and the end of a plugin cost: the work of all processes that
// it takes, and the time. RACFLOW names another program that links this package, since the cost
// depends on the program's size.
func BenchmarkStart(b *testing.B) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	if other := os.Getenv("RACFLOW"); other != "" {
		self = other
	}
	dir := b.TempDir()
	for _, c := range []struct {
		name   string
		policy *Policy
	}{
		{"plain", nil},
		{"unconfined", &Policy{Home: dir, Work: dir, Temp: dir, Unconfined: true}},
		{"confined", &Policy{Home: dir, Work: dir, Temp: dir}},
	} {
		b.Run(c.name, func(b *testing.B) {
			before := childrenCPU(b)
			for b.Loop() {
				cmd := exec.Command("/bin/true")
				control := Plain(cmd)
				if c.policy != nil {
					if cmd, control, err = Command(self, *c.policy, "/bin/true"); err != nil {
						b.Fatal(err)
					}
				}
				cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
				if err := control.Start(); err != nil {
					b.Fatal(err)
				}
				<-control.Ended()
			}
			b.ReportMetric((childrenCPU(b)-before).Seconds()*1e3/float64(b.N), "cpu-ms/op")
		})
	}
}

// childrenCPU is the time that the children of this process have worked, which have ended.
func childrenCPU(b *testing.B) time.Duration {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
