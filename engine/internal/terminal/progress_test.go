package terminal

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestUpdate: a terminal has one line that is overwritten, a log a line every 30 seconds.
func TestUpdate(t *testing.T) {
	for name, test := range map[string]struct {
		width func() int
		want  string
	}{
		"a log":      {nil, "embedding, 30 s\nembedding, 60 s\n"},
		"a terminal": {func() int { return 80 }, "embedding, 15 s\r\x1b[Kembedding, 30 s\r\x1b[Kembedding, 45 s\r\x1b[Kembedding, 60 s\r\x1b[K"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			start := time.Unix(0, 0)
			p := &Progress{w: &out, width: test.width, last: start}
			for _, s := range []int{0, 15, 30, 45, 60} {
				p.now = func() time.Time { return start.Add(time.Duration(s) * time.Second) }
				p.Update(func(time.Time) []string { return []string{"embedding", fmt.Sprintf("%d s", s)} })
			}
			p.Clear()
			if out.String() != test.want {
				t.Errorf("%q, want %q", out.String(), test.want)
			}
		})
	}
}
