package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/wire"
)

// Row is the result for a row: a vector, or a text that is equal for equal results. An error of a
// single row is a result, too.
type Row struct {
	text   string
	vector []float32
}

// differs says how a result differs from the earlier one.
func (r Row) differs(before Row, what string) error {
	if r.text != before.text {
		return fmt.Errorf("%s: got %.200v, before it was %.200v", what, r.text, before.text)
	}
	if d := distance(r.vector, before.vector); !(d < 1e-4) {
		return fmt.Errorf("%s: it is %v away from its vector before", what, d)
	}
	return nil
}

func distance(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		sum += d * d
	}
	return math.Sqrt(sum)
}

// call passes rows to a stage of any kind: texts to an embedder, documents, passages, queries to a
// collection under load, or a batch of items.
func call(ctx context.Context, s *wire.Stage, kind sdk.Kind, in any) ([]Row, error) {
	switch in := in.(type) {
	case []string:
		vectors, err := s.Embed(ctx, sdk.RolePassage, in)
		rows, err := rowsOf(make([]string, len(vectors)), err)
		for i := range rows {
			rows[i].vector = vectors[i]
		}
		return rows, err
	case []sdk.Document:
		return rowsOf(s.Chunk(ctx, in))
	case []sdk.Passage:
		return rowsOf(s.Enrich(ctx, in))
	case []sdk.Query:
		return rowsOf(s.Retrieve(ctx, collection, dense, in))
	case sdk.Batch:
		switch kind {
		case sdk.KindRerank:
			return rowsOf(s.Rerank(ctx, in))
		case sdk.KindPrompt:
			return rowsOf(s.Prompt(ctx, in))
		case sdk.KindSample:
			return rowsOf(s.Sample(ctx, in))
		case sdk.KindElect:
			return rowsOf(s.Elect(ctx, in))
		}
	}
	return nil, fmt.Errorf("there are no checks for kind %q", kind)
}

func rowsOf[T any](results []T, err error) ([]Row, error) {
	failed, ok := err.(sdk.RowErrors)
	if err != nil && !ok {
		return nil, err
	}
	all := make([]Row, len(results))
	for i := range results {
		if unusable := new(wire.NumberError); errors.As(failed[i], &unusable) {
			return nil, fmt.Errorf("row %d: %w", i, unusable)
		}
		all[i].text = fmt.Sprintf("%+v %v", results[i], failed[i])
	}
	return all, nil
}

// part returns some of the rows for call.
func part(in any, lo, hi int) any {
	switch in := in.(type) {
	case []string:
		return in[lo:hi]
	case []sdk.Document:
		return in[lo:hi]
	case []sdk.Passage:
		return in[lo:hi]
	case sdk.Batch:
		in.Items = in.Items[lo:hi]
		return in
	}
	return in
}

// numbered returns ordinary rows for call; the same numbers give the same rows. If long is positive,
// each row has an id, or a text without content, of about that many bytes.
func numbered(kind sdk.Kind, from, to, long int) any {
	id := func(i int) string { return fmt.Sprint(i, strings.Repeat("x", long)) }
	switch kind {
	case sdk.KindEmbed:
		return each(from, to, func(i int) string {
			if long > 0 {
				return strings.Repeat(" ", long)
			}
			return fmt.Sprintf("utterance number %d about a lost card", i)
		})
	case sdk.KindChunk:
		return each(from, to, func(i int) sdk.Document { return *page(id(i), i) })
	case sdk.KindEnrich:
		return each(from, to, func(i int) sdk.Passage {
			d := page(id(i), i)
			return sdk.Passage{Document: d, Chunk: sdk.Chunk{End: len(d.Text)}}
		})
	case sdk.KindStore:
		return each(from, to, func(i int) sdk.Query { // a dense search does not look at the texts
			return sdk.Query{Text: strings.Repeat("x", long), Vector: direction(i)}
		})
	}
	return sdk.Batch{Labels: labels, Items: each(from, to, func(i int) sdk.Item {
		it := item(i)
		if long > 0 {
			it.ID = id(i)
		}
		return it
	})}
}

func each[T any](from, to int, of func(int) T) []T {
	all := make([]T, 0, to-from)
	for i := from; i < to; i++ {
		all = append(all, of(i))
	}
	return all
}

func page(id string, i int) *sdk.Document {
	return &sdk.Document{ID: id, Text: fmt.Sprintf("# Cards\n\nA lost card is blocked, says page %d.\n\nA new one takes a week.\n", i)}
}

// documents returns documents that break chunkers.
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

// passages returns passages of the documents that break chunkers, with long documents shortened. A
// document is one passage, or windows that overlap.
func passages() []sdk.Passage {
	const most, width = 600, 60
	var all []sdk.Passage
	for i, d := range documents() {
		if text := []rune(d.Text); len(text) > most {
			d.Text = string(text[:most])
		}
		switch {
		case strings.TrimSpace(d.Text) == "": // no passages
		case i%5 == 0:
			all = append(all, sdk.Passage{Document: &d, Chunk: sdk.Chunk{End: len(d.Text)}})
		default:
			all = append(all, windows(&d, width)...)
		}
	}
	twin := *all[0].Document
	twin.ID, twin.Meta = "twin of "+twin.ID, nil
	return append(all, sdk.Passage{Document: &twin, Chunk: sdk.Chunk{End: len(twin.Text)}})
}

// windows cuts a document every width characters into passages. Each passage reaches a tenth of width
// into the next.
func windows(d *sdk.Document, width int) []sdk.Passage {
	var all []sdk.Passage
	starts := make([]int, 0, len(d.Text)+1)
	for at := range d.Text {
		starts = append(starts, at)
	}
	starts = append(starts, len(d.Text))
	for lo := 0; lo < len(starts)-1; lo += width {
		c := sdk.Chunk{Start: starts[lo], End: starts[min(lo+width+width/10, len(starts)-1)], Meta: sdk.Meta{"headings": "Cards / Fees"}}
		if strings.TrimSpace(d.Text[c.Start:c.End]) != "" {
			all = append(all, sdk.Passage{Document: d, Chunk: c})
		}
	}
	return all
}

// of returns the passages of one document.
func of(all []sdk.Passage, id string) []sdk.Passage {
	return slices.DeleteFunc(slices.Clone(all), func(p sdk.Passage) bool { return p.Document.ID != id })
}

// byDocument divides passages into parts with one document each.
func byDocument(all []sdk.Passage) (parts [][2]int) {
	for lo, hi := 0, 0; lo < len(all); lo = hi {
		for hi < len(all) && all[hi].Document == all[lo].Document {
			hi++
		}
		parts = append(parts, [2]int{lo, hi})
	}
	return parts
}

// trainingRows returns rows with everything that a stage may learn from: texts, vectors and votes
// that tell the labels apart. Some rows have no label, no valid text, or no votes.
func trainingRows() []sdk.TrainingRow {
	b := items(30)
	rows := make([]sdk.TrainingRow, len(b.Items))
	for i, it := range b.Items {
		label := i % len(b.Labels)
		rows[i] = sdk.TrainingRow{ID: it.ID, Label: b.Labels[label], Text: it.Text + " " + b.Labels[label], Vector: make([]float32, 3), Samples: slices.Clone(it.Samples)}
		rows[i].Vector[label] = 1
	}
	rows[4].Label = ""
	return rows
}

// texts are the inputs that break embedders.
var texts = []string{
	"I lost my card yesterday", "what is the weather like", "", "   \t\n", "Größe, naïveté, Ελληνικά, 中文分词, 🙂",
	"caf\xe9 is not UTF-8", "\x00 a zero byte", strings.Repeat("a long text ", 2000), strings.Repeat("x", 5000), "I lost my card yesterday",
}

// labels are the labels of all items.
var labels = []string{"card_lost", "pin_change", "weather"}

// items makes n items with all columns. Some have no candidates, no voters, or a text that is not
// UTF-8.
func items(n int) sdk.Batch {
	b := sdk.Batch{Labels: slices.Clone(labels), Items: make([]sdk.Item, n)}
	for i := range b.Items {
		b.Items[i] = item(i)
	}
	return b
}

func item(i int) sdk.Item {
	it := sdk.Item{
		ID: fmt.Sprint("item-", i), Text: fmt.Sprint("my card is gone ", i), Vector: []float32{1, 0, 0},
		Meta: sdk.Meta{"channel": "chat"}, Prompts: []sdk.Prompt{{Text: "which label?"}},
	}
	switch i % 4 {
	case 1:
		return it // an item for which nothing was found
	case 2:
		it.Text = "caf\xe9"
	case 3:
		it.Text = ""
	}
	for j := range 12 {
		c := sdk.Candidate{
			ID: fmt.Sprint("entry-", j), Text: fmt.Sprint("example ", j), Label: labels[j%len(labels)],
			Score: 1 - float32(j)/20, Dense: .9 - float32(j)/20, Lexical: sdk.Unscored,
		}
		it.Candidates = append(it.Candidates, c)
		if j < len(labels) {
			it.Prototypes = append(it.Prototypes, sdk.Candidate{Label: c.Label, Dense: c.Dense})
			it.Random = append(it.Random, c)
		}
	}
	it.Samples = []sdk.Sample{
		{Voter: "neighbours", Distance: .25, Answers: []sdk.Answer{{Label: labels[i%3], Weight: .6, Accepted: true}, {Label: labels[(i+1)%3], Weight: .4, Accepted: i%8 != 0}}},
		{Voter: "prototype", Answers: []sdk.Answer{{Label: labels[(i+1)%3], Weight: .5, Accepted: true}}},
		{Voter: "silent"},
	}
	return it
}

// scripts returns items whose texts, ids, labels and metadata use many scripts.
func scripts() sdk.Batch {
	texts := []string{
		"Größe, naïveté, Ελληνικά, Кириллица", "我昨天丢了卡。你呢？", "カードをなくした", "บัตรเครดิตหาย", "أين بطاقتي؟ \u202eabc\u202c", "שלום",
		"e\u0301a\u0308\u0323 \u200b\ufeff", "👩‍👩‍👧‍👦🇩🇪 🏳️‍🌈", "\x00 a zero byte", "\u2028\u0085\r\n\t", "\U0010ffff\uffff", "<b>&amp;</b> %s {{.}} ${x} \\ \"'`",
		strings.Repeat("a long text ", 3000), strings.Repeat("ж", 40_000),
	}
	b := items(len(texts))
	b.Labels = slices.Clone(texts[:6])
	slices.Sort(b.Labels)
	for i := range b.Items {
		it := &b.Items[i]
		it.ID, it.Text, it.Meta = fmt.Sprint(texts[i][:min(len(texts[i]), 40)], i), texts[i], sdk.Meta{texts[i%6]: texts[i%12]}
		it.Prompts = []sdk.Prompt{{Messages: []sdk.Message{{Role: sdk.MessageUser, Text: texts[i]}}, Labels: b.Labels}}
		for j := range it.Candidates {
			it.Candidates[j].Text, it.Candidates[j].Label = texts[(i+j)%len(texts)], b.Labels[j%6]
		}
	}
	return b
}

// extremes returns items whose numbers are at their bounds, or missing.
func extremes() sdk.Batch {
	b := items(8)
	for i := range b.Items {
		it := &b.Items[i]
		it.Vector = []float32{0, 0, 0}
		for j := range it.Candidates {
			c := &it.Candidates[j]
			switch i % 3 {
			case 0: // as after a lexical search that found nothing worth a score
				c.Score, c.Dense, c.Lexical = 0, sdk.Unscored, sdk.Unscored
			case 1:
				c.Score, c.Dense, c.Lexical = float32(math.Copysign(1e30, float64(j%2)-1)), -1, 1e30
			case 2:
				c.Score, c.Dense, c.Lexical = 1e-38, 1, 0
			}
		}
		for j := range it.Samples {
			it.Samples[j].Distance = []float64{0, 1, 1e-300}[i%3]
			for k := range it.Samples[j].Answers {
				it.Samples[j].Answers[k].Weight = []float64{0, 1e100, 1e-300}[(i+j+k)%3]
			}
		}
	}
	return b
}

// others returns a batch with other content in all columns that are not among reads.
func others(b sdk.Batch, reads sdk.Columns) sdk.Batch {
	out := sdk.Batch{Labels: b.Labels, Items: slices.Clone(b.Items)}
	if !reads.Has(sdk.ColumnLabels) {
		out.Labels = []string{"other"}
	}
	candidate := sdk.Candidate{ID: "other", Text: "other", Label: "other", Score: 9, Dense: .1, Lexical: 7}
	for i := range out.Items {
		it := &out.Items[i]
		for column, change := range map[sdk.Column]func(){
			sdk.ColumnText:       func() { it.Text = "something else" },
			sdk.ColumnMeta:       func() { it.Meta = sdk.Meta{"channel": "letter"} },
			sdk.ColumnVector:     func() { it.Vector = []float32{0, 1, 0} },
			sdk.ColumnPrototypes: func() { it.Prototypes = []sdk.Candidate{{Label: "other", Dense: .3}} },
			sdk.ColumnRandom:     func() { it.Random = []sdk.Candidate{candidate} },
			sdk.ColumnPrompts:    func() { it.Prompts = []sdk.Prompt{{Text: "another?"}} },
			sdk.ColumnSamples: func() {
				it.Samples = []sdk.Sample{{Voter: "other", Answers: []sdk.Answer{{Label: "other", Weight: 1, Accepted: true}}}}
			},
		} {
			if !reads.Has(column) {
				change()
			}
		}
		switch {
		case reads.Has(sdk.ColumnCandidateTexts):
		case !reads.Has(sdk.ColumnCandidates):
			it.Candidates = []sdk.Candidate{candidate}
		default:
			it.Candidates = slices.Clone(it.Candidates)
			for j := range it.Candidates {
				it.Candidates[j].Text, it.Candidates[j].Context = "another example", "elsewhere"
			}
		}
	}
	return out
}
