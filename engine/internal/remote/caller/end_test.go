package caller_test

import (
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/remote/caller"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// A run without a journal ends where its beginning failed halfway: it is there, and nobody has looked for
// workers yet.
func TestEndOfHalfABeginning(t *testing.T) {
	w := newWorld(t, 10)
	c, _ := w.caller(caller.Options{})
	js := w.servers.JetStream(t)
	state, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "racflow_" + c.Run()})
	if err != nil {
		t.Fatal(err)
	}
	must.Get(state.Put(t.Context(), caller.CallerKey, []byte(`{"name":"another"}`)))(t)
	o := w.options("far", c)
	o.Builtin, o.Dir = builtin, w.dir
	p := must.Get(engine.Open(t.Context(), filepath.Join(w.dir, "p.hcl"), o))(t)
	defer p.Close()
	if _, err = p.Work(t.Context(), func([]outcome.Result) error { return nil }, nil); err == nil {
		t.Fatal("another caller has the run")
	}
	if !w.gone() {
		t.Error("the run is at the servers")
	}
}
