package profile

import "testing"

// If the effort is a number of tokens, that number is the room for thoughts.
func TestBudgetIsRoom(t *testing.T) {
	room := 7
	for effort, want := range map[string]int{"10000": 10000, "5": leastBudget, "low": LeastRoom} {
		if got := (Given{Effort: effort}).over(Profile{}).thoughtTokens(); got != want {
			t.Errorf("effort %s: %d tokens, want %d", effort, got, want)
		}
	}
	if got := (Given{Effort: "10000", Room: &room}).over(Profile{}).thoughtTokens(); got != room {
		t.Errorf("a room that is given: %d tokens", got)
	}
}
