package main

import (
	"context"
	"testing"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/plugins"
)

// In a process that runs a stage, Serve does not return.
var stages = engine.Serve(append(plugins.All(), loud()))

// Who shouts gets the stage's label, beside racflow's own voters.
func TestLoud(t *testing.T) {
	ctx := context.Background()
	p, err := engine.Open(ctx, "loud.hcl", engine.Options{Builtin: stages, State: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for text, votes := range map[string]int{"WHERE IS MY PARCEL": 1, "where is my parcel": 0} {
		r, err := p.Answer(ctx, engine.Item{Text: text})
		if err != nil || r.Error != nil {
			t.Fatal(err, r.Error)
		}
		got := 0
		for _, v := range r.Votes {
			if v.Voter == "loud" && v.Answer == "complaint_staff" {
				got++
			}
		}
		if got != votes {
			t.Errorf("%s: %d votes, not %d", text, got, votes)
		}
	}
}
