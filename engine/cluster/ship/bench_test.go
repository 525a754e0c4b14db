package ship

import (
	"fmt"
	"testing"
	"time"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/cluster/natstest"
)

// BenchmarkShip takes files as a collection of about 200 MB has them to a worker, over one server on loopback: the seconds of the
// upload, of the load, and of both again where nothing has changed.
func BenchmarkShip(b *testing.B) {
	servers := natstest.Start(b, 1)
	caller, worker := connect(b, servers), connect(b, servers)
	for n := 0; b.Loop(); n++ {
		dir, state := b.TempDir(), b.TempDir()
		var files []engine.ShipFile
		size := int64(0)
		for i, mb := range []int64{64, 64, 48, 16, 8} {
			files = append(files, noise(b, dir, fmt.Sprintf("%d-%d.segment", n, i), mb<<20))
			size += mb << 20
		}
		var shipped []Shipped
		for _, name := range []string{"put", "get", "put-again", "get-again"} {
			start := time.Now()
			var err error
			if name == "put" || name == "put-again" {
				shipped, err = Put(b.Context(), caller, files)
			} else {
				err = get(b.Context(), worker, shipped, state)
			}
			if err != nil {
				b.Fatal(err)
			}
			took := time.Since(start).Seconds()
			b.ReportMetric(took, name+"-s")
			b.ReportMetric(float64(size)/1e6/took, name+"-MB/s")
		}
	}
}
