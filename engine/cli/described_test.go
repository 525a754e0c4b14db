package cli

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestDescribedLabels: a label with a description and no example can be the answer. A renamed label
// is answered and scored under its new name. A prompt shows the descriptions of labels.
func TestDescribedLabels(t *testing.T) {
	var rows strings.Builder
	rows.WriteString("text\tlabel\n")
	for i, thing := range strings.Fields("bank garden school office airport harbour station museum theatre library") {
		fmt.Fprintf(&rows, "what is the weather at the %[1]s\tweather\nwill it rain at the %[1]s\tweather\n", thing)
		fmt.Fprintf(&rows, "how do i get to the %[1]s\tdirections\nshow me the way to the %[1]s\tdirections\n", thing)
		fmt.Fprintf(&rows, "remind me in %[1]d hours to call the %[2]s\treminder\nset a reminder %[1]d for the %[2]s\tremind\n", i, thing)
	}
	dir := folder(t, map[string]string{
		"p.hcl": `knowledge "k" {
  source { path = "rows.tsv" }
  labels { path = "labels.tsv" }
  embed { use = "hashing" }
}
pipeline "p" {
  input { path = "items.tsv" }
  retrieve "r" {}
  sample "neighbours" { use = "neighbours" }
  sample "prototype" { use = "prototype" }
  sample "linear" { use = "linear" }
  elect "e" {}
}
`,
		"rows.tsv":   rows.String(),
		"labels.tsv": "label\tname\tdescription\tbecomes\nplay_music\tMusic\tPlay a song, an album or a playlist.\t\nremind\t\t\treminder\nwether\t\t\tweather\n",
		"items.tsv":  "text\tlabel\nplay a song from the new album\tplay_music\nset a reminder for the concert\tremind\nhow do i get to the concert\tdirections\n",
	})
	code, _, stderr := ran(t, racflow(t, dir, "run", "--state", "state", "--output", "out.jsonl", "p.hcl"))
	if !strings.Contains(stderr, "labels.tsv:4: no row has the label \"wether\"") || !strings.Contains(stderr, `Did you mean "weather"?`) || code == 1 {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	for i, r := range jsonLines[struct{ Expected, Answer string }](t, readFile(t, dir, "out.jsonl")) {
		if want := []string{"play_music", "reminder", "directions"}[i]; r.Answer != want || r.Expected != want {
			t.Errorf("item %d: %+v, want %s", i+1, r, want)
		}
	}
	out := must(t, racflow(t, dir, "explain", "--state", "state", "--json", "newest", "3"))
	var explained struct{ Expected string }
	if err := json.Unmarshal([]byte(out), &explained); err != nil || explained.Expected != "reminder" {
		t.Errorf("of the run that was kept: %v, %s", err, out)
	}
	_, out, _ = ran(t, racflow(t, dir, "eval", "--state", "state", "p.hcl")) // a line of the table is invalid
	if !strings.Contains(out, "play_music (Music)") || !strings.Contains(out, "reminder ") {
		t.Errorf("eval: %s", out)
	}
	if files, err := filepath.Glob(filepath.Join(dir, "state", "fitted", "*", "*", "weights.json")); err != nil || len(files) != 1 || !strings.Contains(readFile(t, "", files[0]), `"raise"`) {
		t.Errorf("nothing was learnt of the label without an example: %v, %v", files, err)
	}
}
