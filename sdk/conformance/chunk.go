package conformance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/remote"
)

// documents are those that break chunkers.
func documents() []sdk.Document {
	texts := map[string]string{
		"notes.md":  "# Cards\n\nA lost card is blocked.\n\n## Fees\n\n| card | fee |\n|---|---|\n| gold | 10 |\n\n```\n# no heading\n```\n\nEnd.\n",
		"table.md":  "# Fees\n\n| card | fee |\n|---|---|\n" + strings.Repeat("| gold | 10 |\n", 400),
		"open.md":   "# One\n\n```go\nfunc never() {\n",
		"main.go":   "package main\n\n// main starts.\nfunc main() {\n\tprintln(\"}\")\n}\n\ntype t struct {\n\ta int\n}\n",
		"main.py":   "import os\n\nclass A:\n    def f(self):\n        return 1\n\ndef g():\n    return '''\ndef h():\n'''\n",
		"empty.txt": "", "one.txt": "x", "emoji.txt": "👩‍👩‍👧‍👦", "spaces.txt": "  \t\n\u00a0\u2003\r\n ", "blank-ends.txt": "\n\n\n  a  \n\n\n",
		"line.txt": strings.Repeat("a long line without an end ", 40_000), "word.txt": strings.Repeat("ж", 300_000),
		"crlf.txt": strings.Repeat("A line.\r\nAnother one! And more?\r\n\r\n", 300), "cr.txt": strings.Repeat("old\rlines\r", 300),
		"many.txt": strings.Repeat("🙂🇩🇪 ", 3000), "marks.txt": strings.Repeat("e\u0301a\u0308\u0323 ", 3000), "han.txt": strings.Repeat("我昨天丢了卡。你呢？", 500),
		"zero.txt": "a\x00b\uFFFD\uFFFDc", "bom.txt": "\uFEFFtext", "lines.txt": strings.Repeat("\n", 5000) + "x" + strings.Repeat("\n", 5000),
	}
	all := make([]sdk.Document, 0, len(texts))
	for _, id := range slices.Sorted(maps.Keys(texts)) {
		format := "text"
		switch {
		case strings.HasSuffix(id, ".md"):
			format = "markdown"
		case !strings.HasSuffix(id, ".txt"):
			format = "code"
		}
		all = append(all, sdk.Document{ID: id, Text: texts[id], Meta: sdk.Meta{"path": id, "format": format}})
	}
	return append(all, sdk.Document{ID: "without metadata", Text: "Some text. More of it."})
}

var chunkChecks = []Check{
	{Name: "chunks give the document back", Within: Long,
		Why: "What is in no chunk cannot be found, and answers cite chunks by their place in the document.",
		Fix: "Let chunks begin and end between characters, in order, and cover all that is not white space.",
		Run: opened(func(ctx context.Context, c *remote.Stage, _ sdk.Stage) error {
			all := documents()
			for _, batch := range [][]sdk.Document{nil, all[:1], all} {
				lists, err := c.Chunk(ctx, batch)
				if err != nil {
					return fmt.Errorf("batch of %d: %w", len(batch), err)
				}
				for i, chunks := range lists {
					if err := covers(batch[i].Text, chunks); err != nil {
						return fmt.Errorf("document %s: %w", batch[i].ID, err)
					}
					if err := headed(batch[i].Text, chunks); err != nil {
						return fmt.Errorf("document %s: %w", batch[i].ID, err)
					}
				}
			}
			return nil
		})},
	{Name: "same document, same chunks", Within: Long,
		Why: "A build makes chunks of changed documents alone; other chunks of an unchanged one would be paid for again.",
		Fix: "Let a document's chunks depend on that document alone.",
		Run: opened(func(ctx context.Context, c *remote.Stage, _ sdk.Stage) error {
			all := documents()
			return sameResults(all, 0, eachRow(len(all)), func(d []sdk.Document) ([][]sdk.Chunk, error) { return c.Chunk(ctx, d) }, equal)
		})},
	endsWhenCancelled(
		func() []sdk.Document {
			many := make([]sdk.Document, 100)
			for i := range many {
				many[i] = sdk.Document{ID: fmt.Sprint(i), Text: strings.Repeat("A sentence about a lost card.\n\n", 1000)}
			}
			return many
		},
		func() []sdk.Document { return nil },
		func(ctx context.Context, c *remote.Stage, _ sdk.Kind, d []sdk.Document) error {
			_, err := c.Chunk(ctx, d)
			return err
		},
	),
}

// covers checks that no byte between chunks, and before and after them, is
// anything but white space. Order and boundaries were checked on their way.
func covers(text string, chunks []sdk.Chunk) error {
	end := 0
	check := func(next int) error {
		if next > end && strings.TrimFunc(text[end:next], unicode.IsSpace) != "" {
			return fmt.Errorf("bytes %d to %d are in no chunk: %.40q", end, next, text[end:next])
		}
		return nil
	}
	for _, c := range chunks {
		if err := check(c.Start); err != nil {
			return err
		}
		end = max(end, c.End)
	}
	if err := check(len(text)); err != nil {
		return err
	}
	if strings.TrimFunc(text, unicode.IsSpace) == "" && len(chunks) > 0 {
		return fmt.Errorf("white space has %d chunks", len(chunks))
	}
	return nil
}

// headed checks that headers hold something. That they are of the document, and stand before
// their chunks, was checked on their way.
func headed(text string, chunks []sdk.Chunk) error {
	for i, c := range chunks {
		if h := c.Header; h != (sdk.Span{}) && strings.TrimSpace(text[h.Start:h.End]) == "" {
			return fmt.Errorf("the header of chunk %d, bytes %d to %d, is white space", i, h.Start, h.End)
		}
	}
	return nil
}
