//go:build linux

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestShowsWhatWasSeen finds the prompts and replies of an item again, letter by letter. Once the
// cache is cleared, it names what is missing.
func TestShowsWhatWasSeen(t *testing.T) {
	p := newPaidItems(t, 3)
	if code, stderr := p.run(t, "--keep", "all"); code != 0 {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	show := func() string {
		t.Helper()
		c := racflow(t, p.dir, "explain", "newest", "q1")
		c.Env = append(os.Environ(), "RESUME_KEY=sk-resume-hush")
		out, _ := good(t, c)
		return out
	}
	calls := p.server.Calls()
	out := show()
	asked := ""
	for _, a := range p.server.Asks() {
		if strings.Contains(a.Text(), "number 001") {
			asked = a.Text()
		}
	}
	if asked == "" {
		t.Fatal("the model was not asked about the item")
	}
	for line := range strings.Lines(asked) {
		if line = strings.TrimSpace(line); line != "" && !strings.Contains(out, "  "+line) {
			t.Errorf("the prompt does not show %q:\n%s", line, out)
		}
	}
	if !strings.Contains(out, "reply to sample.llm:\n  vehicle\n") || strings.Contains(out, "not there any more") {
		t.Errorf("replies are not shown:\n%s", out)
	}
	if err := os.RemoveAll(filepath.Join(p.dir, stateDir, "cache")); err != nil {
		t.Fatal(err)
	}
	out = show()
	if strings.Contains(out, "reply to") || !strings.Contains(out, "prompt of prompt.shots") || !strings.Contains(out, "not there any more: 2 of 2 replies to sample.llm: the response cache does not have them any more") {
		t.Errorf("without the cache:\n%s", out)
	}
	if p.server.Calls() != calls {
		t.Error("the model was asked again")
	}
}
