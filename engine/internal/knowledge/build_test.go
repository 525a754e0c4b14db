package knowledge

import (
	"slices"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestPace: a slow embedder gets few texts in a call, a fast one many, and a service whole batches.
func TestPace(t *testing.T) {
	now, took := time.Unix(0, 0), time.Duration(0)
	p := pace{now: func() time.Time { return now }}
	var got []int
	call := func(s *pipeline.Stage, each time.Duration) {
		took = each
		must.Do(t, p.call(s, func(most int) error {
			now, got = now.Add(time.Duration(most)*took), append(got, most)
			return nil
		}))
	}
	local, service := &pipeline.Stage{}, &pipeline.Stage{}
	service.Info.Network = true
	for _, each := range []time.Duration{time.Millisecond, time.Millisecond, time.Millisecond, time.Second, time.Second, time.Second, time.Second, time.Second, time.Second, 100 * time.Millisecond, time.Millisecond} {
		call(local, each)
	}
	call(service, time.Second)
	if want := []int{32, 64, 128, 256, 128, 64, 32, 16, 8, 8, 16, embedBatch}; !slices.Equal(got, want) {
		t.Errorf("calls of %d texts, want %d", got, want)
	}
}
