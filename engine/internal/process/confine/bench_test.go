//go:build linux

package confine

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	usage "github.com/racflow/racflow/sdk/sdktest/must"
)

// BenchmarkStart measures the cost of starting and ending a plugin: the work of all processes
// involved, and the time. RACFLOW names another program that links this package, since the cost
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
			before := usage.Worked(b, syscall.RUSAGE_CHILDREN)
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
			b.ReportMetric((usage.Worked(b, syscall.RUSAGE_CHILDREN)-before).Seconds()*1e3/float64(b.N), "cpu-ms/op")
		})
	}
}
