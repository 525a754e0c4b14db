package caller_test

import (
	"testing"

	"github.com/racflow/racflow/engine/cluster/caller"
	"github.com/racflow/racflow/engine/observe"
)

// watcher keeps what it last heard of a run.
type watcher struct {
	observe.Observer
	pipeline string
	now      observe.Cluster
}

func (w *watcher) Cluster(pipeline string, now observe.Cluster) { w.pipeline, w.now = pipeline, now }

// Who watches the caller hears how far the run is; in the end, that all batches are done.
func TestObserved(t *testing.T) {
	w := newWorld(t, 100)
	w.worker(nil)
	seen := &watcher{Observer: observe.Or(nil)}
	c, _ := w.caller(caller.Options{})
	o := w.options("far", c)
	o.Observe = seen
	if _, _, err := w.work(t.Context(), o, nil); err != nil {
		t.Fatal(err)
	}
	if seen.pipeline != "p" || seen.now.Done == 0 || seen.now.Waiting != 0 {
		t.Errorf("pipeline %q: %+v", seen.pipeline, seen.now)
	}
}
