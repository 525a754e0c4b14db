package report

import "testing"

// What a profile counts is shown as numbers of things.
func TestProfileCounts(t *testing.T) {
	const want = "yes: thinking; seen 3 answers, 2 requests"
	if got := profileLine([]byte(`{"thinking": "yes", "n": "unknown", "seen": {"requests": 2, "answers": 3}}`)); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
