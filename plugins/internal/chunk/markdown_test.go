package chunk

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/internal/apitest"
	"github.com/racflow/racflow/sdk"
)

func markdownChunks(t *testing.T, size int, d sdk.Document) []sdk.Chunk {
	t.Helper()
	stage, err := Markdown().Open(t.Context(), sdk.Setup{}, fmt.Appendf(nil, `{"size": %d}`, size))
	if err != nil {
		t.Fatal(err)
	}
	lists, err := stage.(sdk.Chunker).Chunk(t.Context(), []sdk.Document{d})
	if err != nil {
		t.Fatal(err)
	}
	return lists[0]
}

func TestMarkdownChunks(t *testing.T) {
	five := "one two three four five\n"
	for name, c := range map[string]struct {
		size int
		text string
		want []string // headings: first line
	}{
		"sections": {8, "# A\n" + five + "## B\n" + five + "# C\n" + five,
			[]string{"A: # A", "A > B: ## B", "C: # C"}},
		"a small one joins its parent": {20, "# A\n" + five + "## B\n" + five + "# C\n" + five,
			[]string{"A: # A", "C: # C"}},
		"siblings are joined, cousins not": {17, "# A\n" + five + five + five + "## B\n" + five + "## C\n" + five + "# D\n## E\nx\n",
			[]string{"A: # A", "A: ## B", "D: # D"}},
		"the whole":                {200, "# A\n" + five + "## B\n" + five + "# C\n" + five, []string{": # A"}},
		"before the first heading": {200, "\n\nSome text.\n# A\n", []string{"A: "}},
		"front matter":             {200, "---\ntitle: x\n# no\n---\n# A\n" + five, []string{"A: ---"}},
		"no front matter":          {200, "---\ntitle\n", []string{": ---"}},
		"setext":                   {14, "Title\nof it\n=====\n" + five + "\nOther\n---\n" + five, []string{"Title of it: Title", "Title of it > Other: Other"}},
		"a rule is none":           {14, "# A\n\n---\n" + five + "\n---\n\n# B\n" + five, []string{"A: # A", "B: # B"}},
		"closed heading":           {13, "## A ##\n" + five + "## C#\n" + five + "#no heading\n", []string{"A: ## A ##", "C#: ## C#"}},
		"code":                     {100, "# A\n```sh\n# no\n~~~\n# no\n```\n# B\n~~~~\n# no\n~~~\n~~~~~\n", []string{": # A"}},
		"code is kept whole": {16, "# A\n" + five + five + "\n```\n" + five + "\n" + five + "```\n" + five,
			[]string{"A: # A", "A: ```", "A: one two three four five"}},
		"an open fence": {100, "# A\n```\n# no\n# no\n", []string{"A: # A"}},
		"indented code": {100, "# A\n\n    # no\n    # no\n", []string{"A: # A"}},
		"comments":      {100, "# A\n<!--\n# no\n\n# no\n-->\n<pre>\n# no\n</pre>\n", []string{"A: # A"}},
		"a table is kept whole": {26, "# A\n" + five + "\n" + five + "\n| a | b |\n|---|---|\n| c | d |\n\n" + five,
			[]string{"A: # A", "A: | a | b |"}},
		"a long table is cut at lines": {14, "# A\n\n| a | b |\n|---|---|\n| c | d |\n| e | f |\n",
			[]string{"A: # A", "A: |---|---|", "A: | e | f |"}},
		"a list is kept whole": {24, "# A\n" + five + "\n" + five + "\n- a\n\n  b c\n- d\n  ```\n  # no\n  ```\ne\n\n" + five,
			[]string{"A: # A", "A: - a"}},
		"levels are left out": {5, "# A\nx\n### B\nx\n## C\nx\n", []string{"A: # A", "A > B: ### B", "A > C: ## C"}},
		"white space":         {10, " \n\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, chunk := range markdownChunks(t, c.size, sdk.Document{Text: c.text}) {
				headings, _ := chunk.Meta["headings"].(string)
				first, _, _ := strings.Cut(c.text[chunk.Start:chunk.End], "\n")
				got = append(got, headings+": "+first)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// A table that is cut repeats its header. The header stays with its first row.
func TestMarkdownTables(t *testing.T) {
	header := "| a | b |\n|---|---|\n" // 14 tokens
	rows := "| c | d |\n| e | f |\n| g | h |\n"
	for name, c := range map[string]struct{ text, want string }{ // with / between chunks
		"cut at rows": {"# A\n\nIntro to it.\n\n" + header + rows, "# A\n\nIntro to it.\n\n/" + header + "| c | d |\n| e | f |\n/" + header + "| g | h |\n"},
		"not wide":    {"# A\n\n| " + strings.Repeat("wide ", 30) + "|\n|---|\n" + rows, ""},
		"two tables":  {"# A\n\n" + header + rows + "\n" + strings.ReplaceAll(header, "a", "x") + rows, ""},
	} {
		var got []string
		for _, chunk := range markdownChunks(t, 28, sdk.Document{Text: c.text}) {
			got = append(got, chunk.In(c.text))
		}
		switch joined := strings.Join(got, "/"); {
		case c.want != "" && joined != c.want:
			t.Errorf("%s: got %q, want %q", name, joined, c.want)
		case name == "not wide" && strings.Count(joined, "wide") != 30:
			t.Errorf("%s: a header that fills a chunk is repeated: %q", name, joined)
		case name == "two tables" && (strings.Count(joined, "| a | b |") != 2 || strings.Count(joined, "| x | b |") != 2):
			t.Errorf("%s: %q", name, joined)
		}
	}
}

// In source code, a line that begins with # is no heading.
func TestCode(t *testing.T) {
	text := "# one two three\nx = 1\n# four five six\ny = 2\n"
	for format, want := range map[string]any{"code": nil, "markdown": "one two three"} {
		got := markdownChunks(t, 12, sdk.Document{Text: text, Meta: sdk.Meta{"format": format}})
		if len(got) != 2 || got[0].Meta["headings"] != want {
			t.Errorf("%s: %+v", format, got)
		}
	}
}

func TestMarkdownGolden(t *testing.T) {
	apitest.CheckReply(t, Markdown(), `{"size": 100}`, "4 a2623f8ae2dce363")
}
