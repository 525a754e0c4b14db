//go:build linux

package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/distil"
)

// TestExportModels exports a run with a language model: rows name the model where it
// gave their label, and nothing of its key.
func TestExportModels(t *testing.T) {
	p := newPaidItems(t, 12)
	if code, stderr := p.run(t); code != 0 {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	out, err := racflow(t, p.dir, "export", p.runID(t), "--confident", "0.3").Output()
	if err != nil {
		t.Fatal(err)
	}
	with, without := 0, 0
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var r distil.Row
		if err := d.Decode(&r); err != nil {
			t.Fatal(err)
		}
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
	if with == 0 || without == 0 || strings.Contains(string(out), "hush") {
		t.Errorf("%d rows with the model, %d without\n%s", with, without, out)
	}
}
