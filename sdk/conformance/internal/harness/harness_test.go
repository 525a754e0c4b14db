package harness

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// noting is a T that notes what is said to it.
type noting struct {
	*testing.T
	mu      sync.Mutex
	said    []string
	skipped bool
}

func (n *noting) say(line string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.said = append(n.said, line)
}

func (n *noting) Errorf(format string, args ...any) { n.say(fmt.Sprintf(format, args...)) }
func (n *noting) Skipf(string, ...any)              { n.skipped = true }
func (n *noting) Run(string, func(T)) bool          { return true }

func TestCheck(t *testing.T) {
	grace = 20 * time.Millisecond
	release, late := make(chan struct{}), make(chan struct{})
	for name, c := range map[string]struct {
		limit   time.Duration
		check   func(T)
		want    string // in what is said
		skipped bool
	}{
		"passes":             {time.Minute, func(T) {}, "", false},
		"ends at Fatalf":     {time.Minute, func(t T) { t.Fatalf("enough"); t.Errorf("more") }, "enough", false},
		"is skipped":         {time.Minute, func(t T) { t.Skipf("no need"); t.Errorf("more") }, "", true},
		"panics":             {time.Minute, func(T) { panic("at the disco") }, "the check panicked: at the disco", false},
		"ends with its time": {time.Millisecond, func(t T) { <-t.Context().Done(); t.Errorf("%v", context.Cause(t.Context())) }, "did not end within 1ms", false},
		"never ends": {time.Millisecond, func(t T) {
			defer close(late)
			t.Cleanup(func() { close(release) }) // as the end of a process
			<-release
			for t.(*checking).live() {
				runtime.Gosched()
			}
			t.Errorf("nobody hears this")
		}, "did not end within 1ms", false},
	} {
		t.Run(name, func(t *testing.T) {
			n := &noting{T: t}
			Check(n, NewOptions(), name, c.limit, c.check)
			if name == "never ends" {
				<-late
			}
			n.mu.Lock()
			defer n.mu.Unlock()
			all := strings.Join(n.said, "\n")
			if (c.want == "") != (all == "") || !strings.Contains(all, c.want) || strings.Contains(all, "more") || strings.Contains(all, "nobody") || n.skipped != c.skipped {
				t.Errorf("said %q, skipped %v", all, n.skipped)
			}
		})
	}
}

func (c *checking) live() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.left
}
