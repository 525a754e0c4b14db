package browser

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/racflow/racflow/engine/internal/show/page"
)

// write writes a page into a file.
func write(t *testing.T, p page.Page) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "page.html")
	f, err := os.Create(path)
	if err == nil {
		if err = p.Write(f); err == nil {
			err = f.Close()
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// hostile is a text that would do harm as markup, on a terminal and in the direction of writing.
const hostile = `</script><script>document.title = "owned"</script><img src=x onerror="document.title='owned'">` + "\x1b[31mred\x1b[0m \u202eevil\u202c \x00 & &amp; \u2028"

// TestHostileItem: whatever an item holds shows as text.
func TestHostileItem(t *testing.T) {
	path := write(t, page.Page{
		Title: hostile, Brand: "racflow", Body: `<div id="place"></div>`,
		Data: map[string]any{
			"id": hostile, "text": hostile, "answer": hostile, "expected": "x", "flagged": true, "reason": hostile,
			"votes":   []any{map[string]any{"voter": hostile, "answer": hostile, "weight": 0.5, "accepted": false, "reason": hostile, "explanation": hostile}},
			"lists":   []any{map[string]any{"stage": "retrieve.near", "candidates": []any{map[string]any{"id": hostile, "text": hostile, "label": hostile, "score": 0.25}, map[string]any{"id": "gone", "score": 0}}}},
			"prompts": []any{map[string]any{"stage": "prompt.ask", "prompts": []any{map[string]any{"messages": []any{map[string]any{"role": "user", "text": hostile}}}}}},
			"replies": []any{map[string]any{"voter": "llm", "text": hostile}},
			"rules":   []any{map[string]any{"stage": "elect.x", "rule": "flag", "text": "confidence < 0.5", "what": hostile}},
			"retries": []any{map[string]any{"stage": "sample.llm", "why": hostile, "times": 2}},
			"fields":  map[string]any{hostile: hostile}, "gone": []any{hostile}, "cost": map[string]any{"llm": 0.5},
		},
		Modules: []string{page.Table, page.Item, show},
	})
	tab := Open(t, path)
	tab.Wait(`document.querySelector(".item")`)
	if title := Eval[string](tab, `document.title`); title == "owned" {
		t.Error("a text of the item was run")
	}
	if n := Eval[int](tab, `document.querySelectorAll("main img, main script").length`); n != 0 {
		t.Errorf("%d elements come from texts", n)
	}
	shown := Eval[string](tab, `document.querySelector(".said").textContent`)
	for _, part := range []string{`</script><script>document.title = "owned"</script>`, "␛[31mred", "⟨U+202E⟩evil⟨U+202C⟩", "␀", "& &amp;"} {
		if !strings.Contains(shown, part) {
			t.Errorf("the text does not show %q: %.200q", part, shown)
		}
	}
	for _, part := range []string{"Votes", "Found by retrieve.near", "Prompts", "Replies", "Rules that decided something", "Asked again", "What it took", "Not there any more", "text not kept"} {
		if !Eval[bool](tab, `document.querySelector("main").textContent.includes("`+part+`")`) {
			t.Errorf("the item does not show %q", part)
		}
	}
	tab.Screenshot("item")
	tab.Accessible()
	tab.Quiet()
}

// show shows the data of a page as an item.
const show = `load("data").then((data) => item(document.getElementById("place"), data, { level: 2 }));`

// TestLongItem: a megabyte of text is shown whole.
func TestLongItem(t *testing.T) {
	long := strings.Repeat("0123456789abcde ", 1<<16) + hostile
	tab := Open(t, write(t, page.Page{
		Title: "Long", Body: `<div id="place"></div>`, Data: map[string]any{"text": long, "answer": "a"},
		Modules: []string{page.Table, page.Item, show},
	}))
	tab.Wait(`document.querySelector(".item")`)
	if n := Eval[int](tab, `document.querySelector(".said").textContent.length`); n < 1<<20 {
		t.Errorf("%d characters are shown", n)
	}
	if title := Eval[string](tab, `document.title`); title != "Long" {
		t.Errorf("the title is %q: a text of the item was run", title)
	}
	tab.Quiet()
}

// TestTable: a table is sorted, paged and opened by keyboard alone.
func TestTable(t *testing.T) {
	path := write(t, page.Page{
		Title: "A table", Brand: "racflow", Body: `<h2>Numbers</h2><div id="place"></div>`,
		Modules: []string{page.Table, `
			const rows = Array.from({ length: 120 }, (_, i) => ({ n: (i * 37) % 120 }));
			document.getElementById("place").append(table({
				caption: "Numbers", rows, size: 50, opener: (row) => "row " + row.n, open: async (row, place) => place.replaceChildren("inside " + row.n),
				columns: [{ name: "Row", cell: () => "" }, { name: "Number", number: true, value: (row) => row.n, cell: (row) => row.n }],
			}).element);`},
	})
	tab := Open(t, path)
	tab.Wait(`document.querySelector("tbody tr")`)
	first := func() string { return Eval[string](tab, `document.querySelector("tbody tr").textContent`) }
	rows := func() int { return Eval[int](tab, `document.querySelectorAll("tbody tr").length`) }
	if first() != "row 00" || rows() != 50 {
		t.Errorf("it begins with %q, and has %d rows", first(), rows())
	}
	// The link, the theme, what scrolls, the column, the first row.
	for _, want := range []string{"Skip to the content", "systemlightdark", "Numbers", "Number", "row 0"} {
		if tab.Keys(kb.Tab); tab.Focused() != want {
			t.Fatalf("the focus is on %q, not on %q", tab.Focused(), want)
		}
	}
	if tab.Keys(kb.ArrowDown); tab.Focused() != "row 37" {
		t.Errorf("below the first row is %q", tab.Focused())
	}
	tab.Keys(kb.Enter)
	tab.Wait(`document.querySelector(".inside")?.textContent === "inside 37"`)
	tab.Accessible()
	if tab.Keys(kb.Enter); rows() != 50 {
		t.Error("the row does not close")
	}
	tab.Focus("button.sort")
	if tab.Keys(kb.Enter); first() != "row 119119" {
		t.Errorf("sorted descending, it begins with %q", first())
	}
	if tab.Keys(kb.Enter); first() != "row 00" || Eval[string](tab, `document.querySelector("[aria-sort]").getAttribute("aria-sort")`) != "ascending" {
		t.Errorf("sorted ascending, it begins with %q", first())
	}
	tab.Focus(".pager button:last-child")
	if tab.Keys(kb.Enter); first() != "row 100100" || rows() != 20 {
		t.Errorf("the last page begins with %q, and has %d rows", first(), rows())
	}
	if said := Eval[string](tab, `document.getElementById("announcer").textContent`); said != "101–120 of 120" {
		t.Errorf("a screen reader hears %q", said)
	}
	tab.Quiet()
}

// TestTheme: a theme that is chosen counts before the system's.
func TestTheme(t *testing.T) {
	tab := Open(t, write(t, page.Page{Title: "A theme", Body: `<p>text</p>`}))
	ground := func() string { return Eval[string](tab, `getComputedStyle(document.body).backgroundColor`) }
	tab.Theme("light")
	light := ground()
	tab.Theme("dark")
	dark := ground()
	if light == dark {
		t.Errorf("both themes are %s", light)
	}
	for _, theme := range []string{"light", "dark"} {
		Eval[bool](tab, `(() => { const s = document.getElementById("theme"); s.value = "`+theme+`"; return s.dispatchEvent(new Event("change")); })()`)
		if want := map[string]string{"light": light, "dark": dark}[theme]; ground() != want {
			t.Errorf("%s is %s, not %s", theme, ground(), want)
		}
	}
	tab.Accessible()
	tab.Quiet()
}
