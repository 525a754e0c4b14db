package knowledge

import (
	"testing"

	"golang.org/x/sync/semaphore"

	"github.com/racflow/racflow/engine/internal/knowledge/generation"
)

// As many groups as are worked on have room, whatever they hold, and four times as many
// while they are small.
func TestRoom(t *testing.T) {
	const groups, large, small = 3, 10 * generation.BatchBytes, 1000
	for name, c := range map[string]struct {
		held, next int
		most       int // of the next ones
	}{
		"large ones":               {0, large, groups},
		"small ones":               {0, small, 4 * groups},
		"half full of large ones":  {groups - 1, small, 4},
		"full of large ones":       {groups, small, 0},
		"a quarter of the room":    {0, generation.BatchBytes / 4, 4},
		"an eighth of the room":    {0, generation.BatchBytes / 8, 8},
		"an eighth, one large one": {1, generation.BatchBytes / 8, 5},
	} {
		room := semaphore.NewWeighted(generation.BatchBytes)
		for range c.held {
			if !room.TryAcquire(roomOf(large, groups)) {
				t.Fatalf("%s: no room for %d large groups", name, c.held)
			}
		}
		got := 0
		for room.TryAcquire(roomOf(c.next, groups)) {
			got++
		}
		if got != c.most {
			t.Errorf("%s: room for %d more, want %d", name, got, c.most)
		}
	}
}
