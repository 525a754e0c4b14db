package report

import "testing"

// Counts in a profile are shown as numbers with nouns.
func TestProfileCounts(t *testing.T) {
	const want = "yes: thinking; seen 3 answers, 2 requests"
	if got := profileLine([]byte(`{"thinking": "yes", "n": "unknown", "seen": {"requests": 2, "answers": 3}}`)); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
