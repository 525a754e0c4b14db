package host

import (
	"context"
	"testing"
	"time"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestProbe ends a process in the ways in which checks of a plugin do, and finds it started again.
func TestProbe(t *testing.T) {
	h, err := New(Options{StopTimeout: patience})
	must.Do(t, err)
	t.Cleanup(h.Close)
	p := start(t, h, Spec{Kind: sdk.KindSample, Use: "echo", Block: "echo"})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for what, end := range map[string]func() error{
		"hang up":  func() error { return p.HangUp(ctx) },
		"shutdown": func() error { return p.Shutdown(ctx) },
		"kill":     func() error { return p.Kill(t.Context()) },
	} {
		before := p.PID()
		if err := end(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := p.Sample(ctx, say("a")); err != nil {
			t.Errorf("after %s: %v", what, err)
		}
		if after := p.PID(); after == before || after < 2 || !p.Alive(ctx) {
			t.Errorf("after %s: process %d follows %d", what, after, before)
		}
	}
	over, done := context.WithTimeout(t.Context(), time.Nanosecond)
	defer done()
	if p.Alive(over) {
		t.Error("a sign of life after its time")
	}
}
