package browser

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// racflow runs the command in a folder of the test.
func racflow(t *testing.T, dir string, args ...string) {
	t.Helper()
	program := os.Getenv("RACFLOW_TEST_PROGRAM")
	if program == "" {
		t.Skip("this test needs racflow: .ci/browser/run builds it")
	}
	c := exec.Command(program, args...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("racflow %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// example runs the example's pipeline, and returns the folder that keeps the run.
func example(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	racflow(t, dir, "init", "--example", "intent", ".")
	racflow(t, dir, "run", "--keep", "all", "-var", "embedder=hashing", "--output", "a.jsonl", "pipelines/intent.hcl")
	return dir
}

// TestReport: the page of a real run, by mouse and by keyboard.
func TestReport(t *testing.T) {
	dir := example(t)
	racflow(t, dir, "report", "newest", "--output", "report.html")
	tab := Open(t, filepath.Join(dir, "report.html"))
	tab.Wait(`document.querySelector("#items tbody tr")`)
	tab.Fits()
	tab.Screenshot("report")
	tab.Accessible()

	// The keyboard reaches everything that it should, in the order of the page, and leaves it again.
	reached := map[string]bool{}
	places := Eval[int](tab, `[...document.querySelectorAll("a[href], button:not(:disabled), select, input, summary, [tabindex='0']")].filter((e) => e.checkVisibility()).length`)
	for n := 0; ; n++ {
		tab.Keys(kb.Tab)
		at := tab.Focused()
		if Eval[bool](tab, `document.activeElement === document.body`) {
			if n < places {
				t.Errorf("the keyboard reaches %d of %d places", n, places)
			}
			break
		}
		if at == "" || n > places {
			t.Fatalf("place %d of %d is %q", n, places, at)
		}
		reached[at] = true
	}
	for _, want := range []string{"Skip to the content", "Confusion", "The figures", "Items", "Search texts, ids and labels", "Next"} {
		if !reached[want] {
			t.Errorf("the keyboard does not reach %q", want)
		}
	}

	// A pair that is confused shows its items, and the focus goes there.
	items := Eval[string](tab, `document.querySelector("#confused button:not(.sort)").textContent`)
	tab.Focus("#confused td button")
	tab.Keys(kb.Enter)
	if focused := tab.Focused(); focused != "Items" {
		t.Errorf("the focus is on %q", focused)
	}
	if shown := Eval[string](tab, `String(document.querySelectorAll("#items tbody tr").length)`); shown != items {
		t.Errorf("%s items are shown, not %s", shown, items)
	}
	tab.Focus("#items .opener")
	tab.Keys(kb.Enter)
	tab.Wait(`document.querySelector("#items .item")`)
	for _, part := range []string{"Votes", "Found by retrieve."} {
		if !Eval[bool](tab, `document.querySelector("#items .item").textContent.includes("`+part+`")`) {
			t.Errorf("the item does not show %q", part)
		}
	}
	tab.Screenshot("report-item")
	tab.Accessible()
	tab.Quiet()
}

// TestCompared: the page of two runs.
func TestCompared(t *testing.T) {
	dir := example(t)
	racflow(t, dir, "run", "-var", "embedder=hashing", "-var", "election=majority", "--output", "b.jsonl", "pipelines/intent.hcl")
	racflow(t, dir, "report", "run-000001", "newest", "--output", "compared.html")
	tab := Open(t, filepath.Join(dir, "compared.html"))
	tab.Wait(`document.querySelector("#items tbody tr")`)
	tab.Fits()
	tab.Screenshot("compared")
	tab.Accessible()
	if shown := Eval[string](tab, `document.querySelector("#cards").textContent`); !strings.Contains(shown, "points") || !strings.Contains(shown, "run-000002") {
		t.Errorf("the figures are %q", shown)
	}
	tab.Quiet()
}

// TestOutOfScope: no answer to an item that no label fits is right in the table and in the item.
func TestOutOfScope(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"train.tsv": "text\tlabel\nmy card\tcard\nthe bill\tbill\n",
		"in.tsv":    "text\tlabel\na song\tmusic\n",
		"p.hcl": `pipeline "p" {
  input { path = "in.tsv" }
  retrieve "near" { from = knowledge.k }
  sample "knn" {
    use    = "neighbours"
    accept = "answer == 'music'"
  }
  elect "e" { use = "soft" }
}
knowledge "k" {
  source { path = "train.tsv" }
  embed { use = "hashing" }
  store { use = "local" }
}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	racflow(t, dir, "run", "--output", "a.jsonl", "p.hcl")
	racflow(t, dir, "report", "newest", "--output", "report.html")
	tab := Open(t, filepath.Join(dir, "report.html"))
	tab.Wait(`document.querySelector("#items tbody tr")`)
	tab.Focus("#items .opener")
	tab.Keys(kb.Enter)
	tab.Wait(`document.querySelector("#items .item")`)
	if shown := Eval[string](tab, `document.querySelector("#items tbody").textContent`); !strings.Contains(shown, "right") || !strings.Contains(shown, "as expected") || strings.Contains(shown, "not as expected") {
		t.Errorf("the item is shown as %q", shown)
	}
	tab.Quiet()
}
