package governor

import (
	"testing"
	"time"

	"github.com/racflow/racflow/sdk"
)

// TestPace asks services that answer a limited number of concurrent calls within a second.
func TestPace(t *testing.T) {
	for name, c := range map[string]struct {
		slots, want int
		busyAt      int // concurrent calls that the service refuses
		alone       bool
	}{
		"one slot":               {slots: 1, want: 1},
		"four slots":             {slots: 4, want: 4},
		"more slots than asked":  {slots: 64, want: 8},
		"it wants fewer":         {slots: 64, want: 2, busyAt: 4},
		"nothing waits: unknown": {slots: 64, want: 1, alone: true},
	} {
		p, level, now := &pace{most: 8}, 1, time.Unix(0, 0)
		for range 200 {
			now = now.Add(time.Second / time.Duration(min(level, c.slots)))
			status := sdk.StatusOK
			if level == c.busyAt {
				status = sdk.StatusBusy
			}
			level = p.next(now, level, status, !c.alone)
		}
		if level != c.want {
			t.Errorf("%s: %d calls at a time, want %d", name, level, c.want)
		}
	}
	if got := (*pace)(nil).next(time.Now(), 3, sdk.StatusOK, true); got != 3 {
		t.Errorf("a given limit became %d", got)
	}
}
