package host

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// BenchmarkOverhead is what the boundary costs per item in batches of 64, in time and in
// the work of both processes: calls of a stage in another process take turns with the
// same calls in this one, and are reported without what these take.
func BenchmarkOverhead(b *testing.B) {
	const rows, turns = 64, 50
	for _, candidates := range []int{0, 60} {
		b.Run(fmt.Sprintf("candidates=%d", candidates), func(b *testing.B) {
			h, _ := newHost(b)
			p := start(b, h, Spec{})
			pid, batch, here := p.current.process.running.ID(), itemsOf(rows, candidates), &echo{}
			var apart, within struct{ wall, cpu time.Duration }
			began := cpuOf(b, pid)
			for b.Loop() {
				wall, cpu := time.Now(), ownCPU(b)
				for range turns {
					if _, err := p.Sample(b.Context(), batch); err != nil {
						b.Fatal(err)
					}
				}
				between, used := time.Now(), ownCPU(b)
				for range turns {
					if _, err := here.Sample(b.Context(), batch); err != nil {
						b.Fatal(err)
					}
				}
				apart.wall, apart.cpu = apart.wall+between.Sub(wall), apart.cpu+used-cpu
				within.wall, within.cpu = within.wall+time.Since(between), within.cpu+ownCPU(b)-used
			}
			apart.cpu += cpuOf(b, pid) - began
			items := float64(b.N * turns * rows)
			b.ReportMetric((apart.wall-within.wall).Seconds()*1e6/items, "wall-µs/item")
			b.ReportMetric((apart.cpu-within.cpu).Seconds()*1e6/items, "cpu-µs/item")
		})
	}
}

// ownCPU is the time that this process has worked.
func ownCPU(b *testing.B) time.Duration {
	var used unix.Rusage
	must.Do(b, unix.Getrusage(unix.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// cpuOf is the time that another process has worked.
func cpuOf(b *testing.B, pid string) time.Duration {
	raw, err := os.ReadFile("/proc/" + pid + "/stat")
	_, rest, _ := strings.Cut(string(raw), ") ")
	fields := strings.Fields(rest)
	if err != nil || len(fields) < 13 {
		b.Fatal(err, string(raw))
	}
	var ticks int64 // of a hundredth of a second
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		must.Do(b, err)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
