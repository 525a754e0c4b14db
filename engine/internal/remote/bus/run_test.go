package bus

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// The first answer to a key stands, and all are read in the order in which they were kept.
func TestAnswersInOrder(t *testing.T) {
	ctx, r := single(t)
	if last := must.Get(r.LastAnswer(ctx))(t); last != 0 {
		t.Errorf("the last of none is %d", last)
	}
	if value := must.Get(r.Answered(ctx, "k0"))(t); value != nil {
		t.Error(value)
	}
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<17) // more than max_payload
	keep := func(i int) {
		value := fmt.Appendf(nil, "value %d", i)
		if i == 1 {
			value = big
		}
		for _, late := range [][]byte{value, []byte("late")} {
			if stands := must.Get(r.KeepAnswer(ctx, fmt.Sprintf("k%d", i), late))(t); !bytes.Equal(stands, value) {
				t.Errorf("answer %d: %d bytes stand", i, len(stands))
			}
		}
	}
	for i := range 3 {
		keep(i)
	}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	var all []StoredAnswer
	for a, err := range r.Answers(reading, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, a); len(all) == 3 {
			keep(3) // while it is being read
		}
		if len(all) == 4 {
			stop()
		}
	}
	for i, a := range all {
		want := fmt.Sprintf("value %d", i)
		if i == 1 {
			want = string(big)
		}
		if a.Key != fmt.Sprintf("k%d", i) || string(a.Value) != want || i > 0 && a.Sequence <= all[i-1].Sequence {
			t.Errorf("answer %d: %s, %d bytes, sequence %d", i, a.Key, len(a.Value), a.Sequence)
		}
	}
	if last := must.Get(r.LastAnswer(ctx))(t); len(all) != 4 || last != all[3].Sequence {
		t.Errorf("%d answers, the last is %d", len(all), last)
	}
	for a, err := range r.Answers(ctx, all[2].Sequence) {
		if err != nil || a.Key != "k3" {
			t.Errorf("behind the third comes %s, %v", a.Key, err)
		}
		break
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
