package bus

import (
	"testing"

	"github.com/racflow/racflow/engine/cluster/natstest"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// Streams of runs that nobody sees are found and can be removed; those of others are not among them.
func TestUnlisted(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1)
	ctx := bounded(t)
	c := connect(t, s.URL(), "c")
	create(t, c, Config{ID: "a1"})
	if all := must.Get(c.Unlisted(ctx))(t); len(all) != 0 {
		t.Errorf("%d of one that is seen", len(all))
	}
	for _, stream := range append(streamsOf("b1", 1), bucket("KV_racflow_other_thing", "$KV.racflow_other_thing.", 1)) {
		must.Do(t, c.createStream(ctx, stream))
	}
	all := must.Get(c.Unlisted(ctx))(t)
	if len(all) != 1 || all[0].ID() != "b1" || all[0].Made.IsZero() {
		t.Fatalf("%+v", all)
	}
	must.Do(t, all[0].Remove(ctx))
	if all := must.Get(c.Unlisted(ctx))(t); len(all) != 0 {
		t.Errorf("%+v", all)
	}
	must.Get(c.Open(ctx, "a1"))(t)
}
