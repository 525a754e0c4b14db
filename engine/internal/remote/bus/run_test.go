package bus

import (
	"bytes"
	"testing"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// The first answer to a key stands, whatever its size.
func TestAnswers(t *testing.T) {
	ctx, r := single(t)
	if value := must.Get(r.Answered(ctx, "k0"))(t); value != nil {
		t.Error(value)
	}
	for key, value := range map[string][]byte{"k0": []byte("value"), "k1": bytes.Repeat([]byte("0123456789abcdef"), 1<<17)} { // more than max_payload
		for _, late := range [][]byte{value, []byte("late")} {
			if stands := must.Get(r.KeepAnswer(ctx, key, late))(t); !bytes.Equal(stands, value) {
				t.Errorf("%s: %d bytes stand", key, len(stands))
			}
		}
		if got := must.Get(r.Answered(ctx, key))(t); !bytes.Equal(got, value) {
			t.Errorf("%s: %d bytes", key, len(got))
		}
	}
}

func TestBacklog(t *testing.T) {
	ctx, r := single(t)
	if b := must.Get(r.Backlog(ctx))(t); b.Waiting+b.UnderWay != 0 || !b.Oldest.IsZero() || b.Now.IsZero() {
		t.Errorf("an empty queue: %+v", b)
	}
	for seq := range 3 {
		must.Do(t, r.Publish(ctx, Position{1, seq + 1}, nil))
	}
	first := must.Get(r.Backlog(ctx))(t)
	if first.Waiting != 3 || first.UnderWay != 0 || first.Oldest.IsZero() || first.Oldest.After(first.Now) {
		t.Errorf("three wait: %+v", first)
	}
	batch := must.Get(r.Take(ctx))(t)
	if b := must.Get(r.Backlog(ctx))(t); b.Waiting != 2 || b.UnderWay != 1 || !b.Oldest.Equal(first.Oldest) {
		t.Errorf("one is under way: %+v", b)
	}
	must.Do(t, batch.Done(ctx))
	if b := must.Get(r.Backlog(ctx))(t); b.Waiting != 2 || b.UnderWay != 0 || !b.Oldest.After(first.Oldest) {
		t.Errorf("one is done: %+v", b)
	}
}
