// Package chunk_test checks what holds for all chunkers.
package chunk_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/racflow/racflow/plugins/internal/chunk"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest"
)

const shared = "../../../../shared/data/"

var stages = []struct {
	stage    sdk.Stage
	config   string
	overlaps bool
}{
	{chunk.Recursive(), `{}`, false},
	{chunk.Recursive(), `{"overlap": 20}`, true},
	{chunk.Markdown(), `{}`, false},
	{chunk.Code(), `{}`, false},
	{chunk.Sentences(), `{}`, true},
	{chunk.Sentences(), `{"sentences": 0, "overlap": 0}`, false},
}

func TestConformance(t *testing.T) {
	for _, s := range stages {
		t.Run(s.stage.Name, func(t *testing.T) { sdktest.Stage(t, s.stage, s.config) })
	}
}

// with is a config with another size and tokenizer.
func with(config string, size int, tokenizer string) string {
	c := map[string]any{}
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		panic(err)
	}
	c["size"], c["tokenizer"] = size, tokenizer
	if overlap, ok := c["overlap"].(float64); ok && c["sentences"] == nil {
		c["overlap"] = min(int(overlap), size/2)
	}
	out, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	return string(out)
}

func open(t testing.TB, stage sdk.Stage, config string) sdk.Chunker {
	t.Helper()
	opened, err := stage.Open(t.Context(), sdk.Setup{}, []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	return opened.(sdk.Chunker)
}

// check checks the chunks of a text: they are in order, not blank, within size, and end between characters. Joined
// they are the text.
func check(text string, chunks []sdk.Chunk, tokenizer *chunk.Tokenizer, size int, overlaps bool) error {
	x := tokenizer.Read(text)
	var joined strings.Builder
	last := 0
	for i, c := range chunks {
		switch {
		case c.Start < 0 || c.Start >= c.End || c.End > len(text):
			return fmt.Errorf("chunk %d is %d to %d", i, c.Start, c.End)
		case c.Start > last || !overlaps && c.Start != last || c.End <= last:
			return fmt.Errorf("chunk %d is %d to %d, the one before ends at %d", i, c.Start, c.End, last)
		case c.Start < len(text) && !utf8.RuneStart(text[c.Start]) || c.End < len(text) && !utf8.RuneStart(text[c.End]):
			return fmt.Errorf("chunk %d cuts a character", i)
		case strings.TrimSpace(text[c.Start:c.End]) == "":
			return fmt.Errorf("chunk %d is white space", i)
		case c.Header != (sdk.Span{}) && (c.Header.Start >= c.Header.End || c.Header.End > c.Start || !strings.Contains(text[c.Header.Start:c.Header.End], "|")):
			return fmt.Errorf("chunk %d from %d has the header %v", i, c.Start, c.Header)
		case x.Tokens(c.Header.Start, c.Header.End)+x.Tokens(c.Start, c.End) > max(size, 4): // a character may have as many as it has bytes
			return fmt.Errorf("chunk %d has %d tokens, more than %d: %.80q", i, x.Tokens(c.Start, c.End), size, text[c.Start:c.End])
		}
		joined.WriteString(text[last:c.End])
		last = c.End
	}
	if got := joined.String(); got != text && (strings.TrimSpace(text) != "" || len(chunks) > 0) {
		return fmt.Errorf("joined, %d chunks have %d of %d bytes", len(chunks), len(got), len(text))
	}
	return nil
}

// random makes texts of pieces that have a meaning for one of the chunkers.
func random(r *rand.Rand) sdk.Document {
	pieces := []string{
		"word", "a", " ", " ", " ", "\n", "\n", "\n\n", "\r\n", "\t", "    ", ". ", "! ", "? ", "。", "Dr. ", "e.g. ", "3.14", "…", "\"", "'", "`",
		"# H\n", "## H ##\n", "\n===\n", "\n---\n", "---\n", "+++\n", "```\n", "~~~~\n", "| a | b |\n|---|---|\n| c | d |\n", "\n| a | b |\n|---|---|\n" + strings.Repeat("| c | d |\n", 50), "- item\n", "1. item\n", "> quote\n", "<pre>", "<!--", "-->",
		"{\n", "}\n", "(", ")", "[", "]", ";\n", ":\n", ",", "//", "/*", "*/", "#", "#if X\n", "#endif\n", "#else\n", `r#"`, `R"(`, `@"`, `"""`, "${", "\\", "/", "'a'", "'a",
		"func f() {\n", "class A:\n", "    def f(self):\n", "@Override\n", "else ", "template <T>\n", "é", "e\u0301", "漢", "한", "🙂", "\u00a0", "\u2003", "\x00", "\uFEFF", strings.Repeat("x", 300), strings.Repeat(" ", 300), strings.Repeat("ж", 90),
	}
	var b strings.Builder
	for range r.IntN(400) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	ends := []string{"go", "java", "c", "cpp", "cs", "js", "ts", "rs", "kt", "swift", "scala", "php", "css", "py", "yaml", "rb", "lua", "sh", "hcl", "md", ""}
	return sdk.Document{ID: "d", Text: b.String(), Meta: sdk.Meta{"path": "a." + ends[r.IntN(len(ends))]}}
}

// tokenizers are the tokenizers available on this machine.
func tokenizers() map[string]*chunk.Tokenizer {
	all := map[string]*chunk.Tokenizer{}
	for _, name := range []string{"words", "characters", "minilm"} {
		if t, err := chunk.Named(name); err == nil {
			all[name] = t
		}
	}
	return all
}

func TestRandom(t *testing.T) {
	rounds := 40
	if testing.Short() {
		rounds = 4
	}
	all := tokenizers()
	for _, s := range stages {
		for _, size := range []int{1, 7, 40, 200} {
			for name, tokenizer := range all {
				c := open(t, s.stage, with(s.config, size, name))
				r := rand.New(rand.NewPCG(uint64(size), 1))
				for range rounds {
					d := random(r)
					chunks, err := c.Chunk(t.Context(), []sdk.Document{d, d})
					if err != nil {
						t.Fatal(err)
					}
					if err := check(d.Text, chunks[0], tokenizer, size, s.overlaps); err != nil {
						t.Fatalf("%s %s %s: %v\n%q", s.stage.Name, with(s.config, size, name), d.Meta["path"], err, d.Text)
					}
					if !reflect.DeepEqual(chunks[0], chunks[1]) {
						t.Fatalf("%s: the same document has other chunks", s.stage.Name)
					}
				}
			}
		}
	}
}

// real reads at most n documents.
func real(t testing.TB, name string, n int) []sdk.Document {
	t.Helper()
	f, err := os.Open(shared + name)
	if err != nil {
		t.Skip("no data: ", err)
	}
	defer f.Close()
	var all []sdk.Document
	for s := json.NewDecoder(bufio.NewReader(f)); s.More() && len(all) < n; {
		var row struct{ ID, Text, Path string }
		if err := s.Decode(&row); err != nil {
			t.Fatal(err)
		}
		all = append(all, sdk.Document{ID: row.ID, Text: row.Text, Meta: sdk.Meta{"path": row.Path}})
	}
	return all
}

func TestReal(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	words := tokenizers()["words"]
	for _, data := range []string{"anthropic_codebases/docs.jsonl", "scifact/corpus.jsonl"} {
		documents := real(t, data, 2000)
		for _, s := range stages {
			c := open(t, s.stage, s.config)
			started := time.Now()
			lists, err := c.Chunk(t.Context(), documents)
			took := time.Since(started)
			if err != nil {
				t.Fatal(err)
			}
			count, size, tokens, small, described := 0, 0, 0, 0, 0
			for i, chunks := range lists {
				text := documents[i].Text
				if err := check(text, chunks, words, 200, s.overlaps); err != nil {
					t.Errorf("%s %s: %v", s.stage.Name, documents[i].ID, err)
				}
				x := words.Read(text)
				count += len(chunks)
				size += len(text)
				for _, c := range chunks {
					n := x.Tokens(c.Start, c.End)
					tokens += n
					if n < 25 {
						small++
					}
					if c.Meta != nil {
						described++
					}
				}
			}
			t.Logf("%s %s %s: %d chunks of %d documents, %.0f tokens each, %d below 25, %d with metadata, %.1f MB/s",
				data, s.stage.Name, s.config, count, len(documents), float64(tokens)/float64(count), small, described, float64(size)/1e6/took.Seconds())
		}
	}
}

// TestLinear checks that no repetition takes quadratic time, which would be minutes.
func TestLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	words := tokenizers()["words"]
	texts := map[string]string{
		"word": "x", "spaces": " ", "lines": "\n", "points": ".", "sentences": "A sentence. ", "quotes": "\"", "hashes": "# ", "braces": "{\n", "closed": "}\n", "comments": "/*", "fences": "```\n",
		"lists": "- a\n", "regular": "([/", "raw": `R"`, "rust": "r#", "templates": "`${", "indented": "  a:\n", "pipes": "|-", "underlines": "a\n-\n", "rules": "a\n", "html": "<!-- ", "minus": "-", "point and lines": ".\n \n",
		"quotes in quotes": "> ", "lists in lists": "- ", "deep items": strings.Repeat("- ", 1000) + "a\n\n", "numbers": "1. ", "references": "[a]: b\n", "brackets": "[", "a wide table": strings.Repeat("|a", 50_000) + "\n" + strings.Repeat("|-", 50_000) + "\n" + strings.Repeat("a\n", 50_000),
	}
	for _, s := range stages {
		c := open(t, s.stage, s.config)
		for name, text := range texts {
			for _, end := range []string{"cpp", "js", "rs", "py"} {
				if s.stage.Name != "code" && end != "cpp" {
					continue
				}
				d := sdk.Document{Text: "a" + strings.Repeat(text, max(1, 300_000/len(text))), Meta: sdk.Meta{"path": "a." + end}}
				started := time.Now()
				lists, err := c.Chunk(t.Context(), []sdk.Document{d})
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(started); took > 5*time.Second {
					t.Errorf("%s %s: 300 kB of %s takes %v", s.stage.Name, s.config, name, took)
				}
				if err := check(d.Text, lists[0], words, 200, s.overlaps); err != nil {
					t.Errorf("%s: 300 kB of %s (%s): %v", s.stage.Name, name, end, err)
				}
			}
		}
	}
}

func FuzzChunk(f *testing.F) {
	words := tokenizers()["words"]
	f.Add("# A\n\ntext. More!\n\n```\n}\n```\n", "a.go", 5)
	f.Add("class A { void f() { } } // x\n", "a.java", 3)
	f.Fuzz(func(t *testing.T, text, path string, size int) {
		if size < 1 || size > 1000 || !utf8.ValidString(text) {
			t.Skip()
		}
		for _, s := range stages {
			chunks, err := open(t, s.stage, with(s.config, size, "words")).Chunk(t.Context(), []sdk.Document{{Text: text, Meta: sdk.Meta{"path": path}}})
			if err == nil {
				err = check(text, chunks[0], words, size, s.overlaps)
			}
			if err != nil {
				t.Errorf("%s: %v", s.stage.Name, err)
			}
		}
	})
}
