package cli

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdkmust "github.com/racflow/racflow/sdk/sdktest/must"
)

// TestAskShowsTheAnswer asks about a handbook of five pages, as a new user does, in other words than
// the pages use. The output has to show the sentence with the answer. The numbers of hits were
// counted when the test was written. With three lines of each passage, from the first with the most
// words of the question on, they were 15 and 18.
func TestAskShowsTheAnswer(t *testing.T) {
	leaveTo(t, "command", "it runs the command many times")
	pages, err := filepath.Glob("testdata/handbook/*.md")
	sdkmust.Do(t, err)
	files := map[string]string{}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		sdkmust.Do(t, err)
		files["handbook/"+filepath.Base(page)] = string(text)
	}
	dir := folder(t, files)
	must(t, racflow(t, dir, "init", "handbook"))
	for embedder, want := range map[string]int{"hashing": 18, "minilm": 22} {
		if embedder == "minilm" && !hasMiniLM() {
			continue
		}
		in, err := os.Open("testdata/handbook/questions.tsv")
		sdkmust.Do(t, err)
		defer in.Close()
		seen, missed := 0, ""
		lines := bufio.NewScanner(in)
		for lines.Scan(); lines.Scan(); { // without the header
			question, answer, _ := strings.Cut(lines.Text(), "\t")
			out, err := racflow(t, dir, "ask", "-var", "embedder="+embedder, "pipeline.hcl", question).Output()
			sdkmust.Do(t, err)
			if strings.Contains(strings.Join(strings.Fields(string(out)), " "), answer) {
				seen++
			} else {
				missed += "\n" + question
			}
		}
		if seen < want {
			t.Errorf("%s: %d answers are seen, and should be %d; not seen:%s", embedder, seen, want, missed)
		}
	}
}
