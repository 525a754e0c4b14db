package enrich

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/racflow/racflow/plugins/internal/chunk"

	"github.com/racflow/racflow/plugins/internal/apitest"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest"
)

func TestPathConformance(t *testing.T) {
	sdktest.Stage(t, Path(), `{}`)
}

// pathContexts are those of the passages of a document that a chunker cuts.
func pathContexts(t *testing.T, config string, d sdk.Document, chunks ...sdk.Chunk) []string {
	t.Helper()
	stage, err := Path().Open(t.Context(), sdk.Setup{}, []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	passages := make([]sdk.Passage, len(chunks))
	for i, c := range chunks {
		passages[i] = sdk.Passage{Document: &d, Chunk: c}
	}
	all, err := stage.(sdk.Enricher).Enrich(t.Context(), passages)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]string, len(all))
	for i, a := range all {
		if got[i] = a.Context; a.Terms != nil {
			t.Errorf("terms %q", a.Terms)
		}
	}
	return got
}

// from is the part of a text that begins with first, up to its end.
func from(text, first string) sdk.Chunk {
	at := strings.Index(text, first)
	return sdk.Chunk{Start: at, End: len(text)}
}

const cart = `package shop;

class Cart {
  int n;

  /** Adds. */
  void add(Item i) {
    one();
    two();
  }
  void clear() {
    n = 0;
  }
}
`

const guide = "Before.\n\n# Guide\n\nOne.\n\n## Set-up\n\n  Two.\n\n# Other\n\nThree.\n"

func TestContext(t *testing.T) {
	java := sdk.Meta{"repo": "acme/shop", "path": "src/HTTPCart.java", "title": "HTTPCart.java", "format": "code"}
	for name, c := range map[string]struct {
		config string
		meta   sdk.Meta
		text   string
		chunk  sdk.Chunk
		want   string
	}{
		"the whole file":         {`{"parts": ["repo", "path", "title", "declaration"]}`, java, cart, from(cart, "package"), "acme/shop / src/HTTPCart.java"},
		"a method":               {`{}`, java, cart, from(cart, "  /** Adds"), "src/HTTPCart.java / class Cart > void add(Item i)"},
		"inside a method":        {`{}`, java, cart, from(cart, "\n    two()"), "src/HTTPCart.java / class Cart > void add(Item i)"},
		"behind it":              {`{}`, java, cart, from(cart, "    n = 0"), "src/HTTPCart.java / class Cart > void clear()"},
		"what the chunker knows": {`{"parts": ["declaration"]}`, java, cart, sdk.Chunk{Start: 0, End: 5, Meta: sdk.Meta{"declaration": "class Other"}}, "class Other"},
		"words of names":         {`{"names": "words", "parts": ["path", "repo"]}`, java, cart, from(cart, "package"), "src HTTP Cart java / acme shop"},
		"at most so long":        {`{"limit": 8}`, sdk.Meta{"path": "äöüäöüäöü"}, "x", sdk.Chunk{End: 1}, "äöüäöüäö"},
		"nothing is known":       {`{}`, nil, "x", sdk.Chunk{End: 1}, ""},
		"not a text":             {`{"parts": ["path", "n"]}`, sdk.Meta{"path": 1.0, "n": true}, "x", sdk.Chunk{End: 1}, ""},
		"prose stays":            {`{"names": "words", "parts": ["title", "path"]}`, sdk.Meta{"path": "it", "title": "Let's do it"}, "x", sdk.Chunk{End: 1}, "Let's do it"},
		"another key":            {`{"parts": ["author"]}`, sdk.Meta{"author": "Jo"}, "x", sdk.Chunk{End: 1}, "Jo"},
		"before the headings":    {`{}`, sdk.Meta{"path": "a.md"}, guide, from(guide, "Before"), "a.md / Guide"},
		"below two":              {`{}`, sdk.Meta{"path": "a.md", "title": "Guide", "format": "markdown"}, guide, from(guide, "  Two"), "a.md / Guide > Set-up"},
		"another title":          {`{}`, sdk.Meta{"path": "a.md", "title": "Manual", "format": "markdown"}, guide, from(guide, "Three"), "a.md / Manual / Other"},
		"plain text has none":    {`{}`, sdk.Meta{"path": "a.txt", "format": "text"}, guide, from(guide, "Three"), "a.txt"},
		"code has none":          {`{}`, sdk.Meta{"path": "a.py"}, "# no\nx = 1\n", sdk.Chunk{Start: 5, End: 11}, "a.py"},
	} {
		got := pathContexts(t, c.config, sdk.Document{ID: "d", Text: c.text, Meta: c.meta}, c.chunk)
		if got[0] != c.want {
			t.Errorf("%s: got %q, want %q", name, got[0], c.want)
		}
	}
}

// TestChunkers checks passages as the chunkers cut them, two documents in one call.
func TestChunkers(t *testing.T) {
	for name, c := range map[string]struct {
		stage      sdk.Stage
		path, text string
		want       string // of the last passage
	}{
		"code":               {chunk.Code(), "Cart.java", cart, "Cart.java / class Cart > void clear()"},
		"code by length":     {chunk.Recursive(), "Cart.java", cart, "Cart.java / class Cart > void clear()"},
		"headings":           {chunk.Markdown(), "a.md", guide, "a.md / Other"},
		"headings by length": {chunk.Recursive(), "a.md", guide, "a.md / Other"},
	} {
		stage, err := c.stage.Open(t.Context(), sdk.Setup{}, []byte(`{"size": 8}`))
		if err != nil {
			t.Fatal(err)
		}
		d := sdk.Document{ID: "d", Text: c.text, Meta: sdk.Meta{"path": c.path}}
		lists, err := stage.(sdk.Chunker).Chunk(t.Context(), []sdk.Document{d})
		if err != nil {
			t.Fatal(err)
		}
		got := pathContexts(t, "{}", d, lists[0]...)
		if last := got[len(got)-1]; len(got) < 3 || last != c.want {
			t.Errorf("%s: the last of %q, want %q", name, got, c.want)
		}
	}
}

func TestConfig(t *testing.T) {
	for _, config := range []string{`{"parts": []}`, `{"limit": 0}`, `{"names": "none"}`} {
		if _, err := Path().Open(t.Context(), sdk.Setup{}, []byte(config)); err == nil {
			t.Errorf("%s is taken", config)
		}
	}
}

func TestWords(t *testing.T) {
	for name, want := range map[string]string{
		"":                      "",
		"/src/main.go":          "src main go",
		"HTTPServerTest":        "HTTP Server Test",
		"snake_case-and.Camel2": "snake case and Camel2",
		"ÄpfelBaum été":         "Äpfel Baum été",
		"README":                "README",
	} {
		if got := pathWords(name); got != want {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
}

// FuzzEnrich checks that contexts are valid texts within the limit, whatever the
// document.
func FuzzEnrich(f *testing.F) {
	f.Add(cart, "Cart.java", 30, 60)
	f.Add(guide, "a.md", 0, 20)
	f.Fuzz(func(t *testing.T, text, path string, start, end int) {
		if start < 0 || end <= start || end > len(text) || !utf8.ValidString(text) || !utf8.ValidString(path) {
			t.Skip()
		}
		got := pathContexts(t, `{"limit": 20}`, sdk.Document{Text: text, Meta: sdk.Meta{"path": path}}, sdk.Chunk{Start: start, End: end})[0]
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > 20 {
			t.Errorf("context %q", got)
		}
	})
}

func TestPathGolden(t *testing.T) { apitest.CheckReply(t, Path(), `{}`, "3 24387c084457cc43") }
