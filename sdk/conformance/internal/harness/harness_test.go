package harness

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestCheck(t *testing.T) {
	grace = 20 * time.Millisecond
	release, late := make(chan struct{}), make(chan struct{})
	for name, c := range map[string]struct {
		limit  time.Duration
		check  func(*T)
		status Status
		want   string // part of the messages
	}{
		"passes":             {time.Minute, func(*T) {}, Passed, ""},
		"ends at Fatalf":     {time.Minute, func(t *T) { t.Fatalf("enough"); t.Errorf("more") }, Failed, "enough"},
		"is skipped":         {time.Minute, func(t *T) { t.Skipf("no need"); t.Errorf("more") }, Skipped, "no need"},
		"skipped too late":   {time.Minute, func(t *T) { t.Errorf("wrong"); t.Skipf("more") }, Failed, "wrong"},
		"panics":             {time.Minute, func(*T) { panic("at the disco") }, Failed, "the check panicked: at the disco"},
		"ends with its time": {time.Millisecond, func(t *T) { <-t.Context().Done(); t.Errorf("%v", context.Cause(t.Context())) }, Failed, "did not end within 1ms"},
		"never ends": {time.Millisecond, func(t *T) {
			defer close(late)
			t.Cleanup(func() { close(release) }) // like the end of a process
			<-release
			for t.live() {
				runtime.Gosched()
			}
			t.Errorf("nobody hears this")
		}, Failed, "did not end within 1ms"},
	} {
		t.Run(name, func(t *testing.T) {
			check := Check{Name: name, Why: "why", Within: c.limit, Run: func(t *T, _ *Subject) error { c.check(t); return nil }}
			r := check.On(t.Context(), t.TempDir(), &Subject{Options: NewOptions()})
			if name == "never ends" {
				<-late
			}
			all := strings.Join(r.Messages, "\n")
			if r.Status != c.status || !strings.Contains(all, c.want) || strings.Contains(all, "more") || strings.Contains(all, "nobody") {
				t.Errorf("%s: said %q", r.Status, all)
			}
			if (r.Why == "why") != (c.status == Failed) {
				t.Errorf("%s: why: %q", r.Status, r.Why)
			}
		})
	}
}

func (t *T) live() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.left
}
