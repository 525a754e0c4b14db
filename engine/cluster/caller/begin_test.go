package caller_test

import (
	"testing"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/cluster/caller"
	"github.com/racflow/racflow/engine/cluster/definition"
	"github.com/racflow/racflow/engine/cluster/lease"
	"github.com/racflow/racflow/engine/governor"
	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// Workers are told what the pipeline was opened with.
func TestDefinition(t *testing.T) {
	w := newWorld(t, 10)
	c, _ := w.caller(caller.Options{})
	o := w.options("far", c)
	o.Lists, o.Keep, o.Services = true, journal.KeepAll, &engine.Services{Mode: governor.Offline, Budget: pipeline.Budget{Tokens: 7}}
	must.Get(w.detach(o))(t)
	d := must.Get(definition.Decode(w.opened(c.Run()).Definition()))(t)
	if !d.Lists || d.Keep != o.Keep || d.Mode != o.Services.Mode || d.Limits.Budget != lease.Amount(o.Services.Budget) {
		t.Errorf("%+v", d)
	}
}
