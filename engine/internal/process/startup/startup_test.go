package startup

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

func percent() uint64 {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

func TestOver(t *testing.T) {
	if os.Getenv("GOGC") != "" {
		t.Skip("GOGC is set")
	}
	t.Cleanup(func() { debug.SetGCPercent(most) }) // for another test in this process
	if got := percent(); got != most {
		t.Errorf("GOGC is %d before main, want %d", got, most)
	}
	if Over(); percent() != most {
		t.Errorf("GOGC is %d before the first collection, want %d", percent(), most)
	}
	for percent() != usual { // the change comes some time after a collection
		runtime.GC()
	}
}
