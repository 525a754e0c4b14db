package lease

import (
	"context"
	"testing"
	"time"
)

// TestClaim: one process at a time has the claim, and another once it is over or given back.
func TestClaim(t *testing.T) {
	brief := Options{}.lasting()
	brief.claim = 300 * time.Millisecond
	p := newPlace(t, Limits{}, brief)
	var keepers []*Keeper
	for _, name := range []string{"a", "b"} {
		keepers = append(keepers, newKeeper(p.open(name), Options{Name: name, Log: p.log(), terms: &brief}))
	}
	a, b := keepers[0], keepers[1]
	first := a.take(t.Context())
	if first == nil || b.take(t.Context()) != nil {
		t.Fatal("two have the claim, or none")
	}
	if err := first.write(t.Context()); err != nil {
		t.Fatalf("it is not renewed: %v", err)
	}
	first.revision-- // as if what was stored had not been acknowledged
	if err := first.write(t.Context()); err != nil {
		t.Errorf("its own claim is not known: %v", err)
	}
	var next *term
	p.until("the claim is over", func() bool {
		next = b.take(t.Context())
		return next != nil
	})
	if !time.Now().After(first.until) {
		t.Error("another has it before it is over")
	}
	if err := first.write(t.Context()); err != errLost { //nolint:errorlint // it is not wrapped
		t.Errorf("it is renewed after another has it: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = next.keep(ctx) // gives it back
	if again := a.take(t.Context()); again == nil {
		t.Error("it was given back, and another does not have it")
	}
}
