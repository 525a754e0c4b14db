//go:build linux

package cli

import (
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/workspace/expect"
)

// TestExportModels exports a run with a language model: rows name the model where it
// gave their label, and nothing of its key.
func TestExportModels(t *testing.T) {
	p := newPaidItems(t, 12)
	if code, stderr := p.run(t); code != 0 {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	out, _ := good(t, racflow(t, p.dir, "export", p.runID(t), "--confidence", "0.3"))
	with, without := 0, 0
	for _, r := range jsonLines[expect.AnswerRow](t, out) {
		asked := strings.Contains(r.Voters, "llm")
		if asked {
			with++
		} else {
			without++
		}
		if asked != (r.Models == "test") || r.Label != "fruit" && r.Label != "vehicle" || r.Run != p.runID(t) || r.Pipeline != "p" {
			t.Errorf("%+v", r)
		}
	}
	if with == 0 || without == 0 || strings.Contains(out, "hush") {
		t.Errorf("%d rows with the model, %d without\n%s", with, without, out)
	}
}
