package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
	"github.com/racflow/racflow/sdk/wire"
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
		Run: opened(func(ctx context.Context, c *wire.Stage, _ sdk.Stage) error {
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
		Run: opened(func(ctx context.Context, c *wire.Stage, _ sdk.Stage) error {
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
		func(ctx context.Context, c *wire.Stage, _ sdk.Kind, d []sdk.Document) error {
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

// Status is how a check ended.
type Status string

// How a check can end.
const (
	Passed  Status = "passed"
	Failed  Status = "failed"
	Skipped Status = "skipped"
)

// Result is the outcome of one check.
type Result struct {
	Name     string
	Status   Status
	Messages []string // what is wrong, or why it was skipped
	Why, Fix string   // of a check that failed
	Log      []string // the last lines that the stage wrote during a check that failed
	Took     time.Duration
}

// logged is how many lines of a stage's log a result has.
const logged = 12

// Collect runs checks outside of a Go test, with folders below dir, and calls done with each
// outcome. It stops when ctx ends.
func Collect(ctx context.Context, dir string, s *Subject, checks []Check, done func(Result)) {
	for _, c := range checks {
		if ctx.Err() != nil {
			return
		}
		started := time.Now()
		r := &recorder{ctx: ctx, dir: dir, status: Passed}
		r.Run(c.Name, func(t T) { c.run(t, s) })
		result := Result{Name: c.Name, Status: r.status, Messages: r.messages, Took: time.Since(started)}
		if r.status == Failed {
			result.Why, result.Fix, result.Log = c.Why, c.Fix, r.log
		}
		done(result)
	}
}

// recorder is a T that notes what a check says. Its parts run in goroutines of their own, which
// Fatalf and Skipf end, and note it with the whole.
type recorder struct {
	ctx    context.Context
	dir    string
	parent *recorder

	mu       sync.Mutex
	status   Status
	messages []string
	log      []string
	cleanups []func()
}

func (r *recorder) Helper() {}

func (r *recorder) Context() context.Context { return r.ctx }

func (r *recorder) note(status Status, line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if status == Failed && r.status == Skipped {
		r.messages = nil
	}
	if status == Failed || r.status == Passed {
		r.status = status
	}
	if status == r.status {
		r.messages = append(r.messages, line)
	}
}

func (r *recorder) Errorf(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	r.note(Failed, line)
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Skipf(format string, args ...any) {
	r.note(Skipped, fmt.Sprintf(format, args...))
	runtime.Goexit()
}

func (r *recorder) Logf(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, strings.Split(line, "\n")...)
	r.log = r.log[max(0, len(r.log)-logged):]
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status == Failed
}

func (r *recorder) TempDir() string {
	dir, err := os.MkdirTemp(r.dir, "check-")
	if err != nil {
		r.Fatalf("make a folder: %v", err)
	}
	r.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

// Run runs a part. A failure is noted with the whole; a skip is only where all of it was skipped,
// as that of a check's first part is.
func (r *recorder) Run(name string, check func(T)) bool {
	sub := &recorder{ctx: r.ctx, dir: r.dir, status: Passed, parent: r}
	done := make(chan struct{})
	go func() { // Fatalf and Skipf end it
		defer close(done)
		check(sub)
	}()
	<-done
	for _, f := range slices.Backward(sub.cleanups) {
		f()
	}
	r.join(name, sub)
	return sub.status != Failed
}

func (r *recorder) join(name string, sub *recorder) {
	for _, line := range sub.messages {
		if r.parent != nil { // a part of a check
			line = name + ": " + line
		}
		if sub.status == Failed || r.parent == nil {
			r.note(sub.status, line)
		}
	}
	for _, line := range sub.log {
		r.Logf("%s", line)
	}
}

// Load is work for a running stage of any kind: as many rows as a check wants, each with a result
// that can be compared.
type Load struct {
	stage   sdk.Stage
	process *Process
}

// Row is the result of one row.
type Row struct {
	text   string
	vector []float32
}

// collection is that of a store under load. It lies in a state folder of its own.
const collection = "conformance_load"

// NewLoad starts the stage, fitted where it wants to be; a store has a few entries.
func NewLoad(t T, s *Subject) (*Load, error) {
	p, err := startFitted(t, s)
	if err != nil || s.Stage.Kind != sdk.KindStore {
		return &Load{s.Stage, p}, err
	}
	entries := make([]sdk.Entry, 50)
	for i := range entries {
		entries[i] = sdk.Entry{ID: fmt.Sprint("entry-", i), Text: fmt.Sprint("my card is gone ", i), Label: labels[i%3], Vector: direction(i)}
	}
	ctx := t.Context()
	if _, err := p.Stage.Open(ctx, collection, sdk.Schema{Dimension: 2}); err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = p.Stage.Drop(context.WithoutCancel(ctx), collection) })
	return &Load{s.Stage, p}, errors.Join(p.Stage.Put(ctx, collection, entries), p.Stage.Commit(ctx, collection, nil))
}

var dense = sdk.Ranking{
	Search: sdk.Search{Mode: sdk.ModeDense, NumCandidates: 5}, Fusion: sdk.Fusion{Method: support.Weighted, DenseWeight: 1}, TopK: 5,
}

func direction(i int) []float32 { return []float32{1, float32(i % 50)} }

// Process is the one that works.
func (l *Load) Process() *Process { return l.process }

// Batch is how many rows the stage likes best in a call.
func (l *Load) Batch() int {
	if l.stage.Batch > 0 {
		return l.stage.Batch
	}
	return 64
}

// Rows asks for the results of rows, which are the same ones at each call.
func (l *Load) Rows(ctx context.Context, from, to int) ([]Row, error) {
	n, s := to-from, l.process.Stage
	switch l.stage.Kind {
	case sdk.KindEmbed:
		texts := make([]string, n)
		for i := range texts {
			texts[i] = fmt.Sprintf("utterance number %d about a lost card", from+i)
		}
		vectors, err := s.Embed(ctx, sdk.RolePassage, texts)
		if err != nil {
			return nil, err
		}
		out := make([]Row, n)
		for i := range out {
			out[i].vector = vectors[i]
		}
		return out, nil
	case sdk.KindChunk:
		documents := make([]sdk.Document, n)
		for i := range documents {
			documents[i] = *document(from + i)
		}
		return texted(flatten(s.Chunk(ctx, documents)))
	case sdk.KindEnrich:
		passages := make([]sdk.Passage, n)
		for i := range passages {
			d := document(from + i)
			passages[i] = sdk.Passage{Document: d, Chunk: sdk.Chunk{End: len(d.Text)}}
		}
		return texted(flatten(s.Enrich(ctx, passages)))
	case sdk.KindStore:
		queries := make([]sdk.Query, n)
		for i := range queries {
			queries[i].Vector = direction(from + i)
		}
		return texted(flatten(s.Retrieve(ctx, collection, dense, queries)))
	}
	b := sdk.Batch{Labels: labels, Items: make([]sdk.Item, n)}
	for i := range b.Items {
		b.Items[i] = item(from + i)
	}
	return texted(results(ctx, s, l.stage.Kind, b))
}

func document(i int) *sdk.Document {
	return &sdk.Document{ID: fmt.Sprint("document-", i), Text: fmt.Sprintf("# Cards\n\nA lost card is blocked, says page %d.\n\nA new one takes a week.\n", i)}
}

func texted(texts []string, err error) ([]Row, error) {
	out := make([]Row, len(texts))
	for i, text := range texts {
		out[i].text = text
	}
	return out, err
}

// Same asks for rows again and compares them with what they were. What another machine returns may
// differ.
func (l *Load) Same(ctx context.Context, from int, want []Row) error {
	got, err := l.Rows(ctx, from, from+len(want))
	if err != nil || l.stage.Network {
		return err
	}
	for i := range got {
		if d := equal(got[i].text, want[i].text); d != "" {
			return fmt.Errorf("row %d: %s", from+i, d)
		}
		if d := distance(got[i].vector, want[i].vector); !(d < 1e-4) {
			return fmt.Errorf("row %d: its vector is %v away from what it was", from+i, d)
		}
	}
	return nil
}

// Large asks for n rows whose ids, or texts that hold nothing, have size bytes each.
func (l *Load) Large(ctx context.Context, n, size int) error {
	s, long := l.process.Stage, strings.Repeat("x", size)
	var err error
	switch l.stage.Kind {
	case sdk.KindEmbed:
		texts := make([]string, n)
		for i := range texts {
			texts[i] = strings.Repeat(" ", size)
		}
		_, err = s.Embed(ctx, sdk.RolePassage, texts)
	case sdk.KindChunk:
		documents := make([]sdk.Document, n)
		for i := range documents {
			documents[i] = sdk.Document{ID: fmt.Sprint(i, long), Text: "A lost card is blocked."}
		}
		_, err = s.Chunk(ctx, documents)
	case sdk.KindEnrich:
		passages := make([]sdk.Passage, n)
		for i := range passages {
			passages[i] = sdk.Passage{Document: &sdk.Document{ID: fmt.Sprint(i, long), Text: "A lost card."}, Chunk: sdk.Chunk{End: 12}}
		}
		_, err = s.Enrich(ctx, passages)
	case sdk.KindStore:
		queries := make([]sdk.Query, n) // whose texts a dense search does not look at
		for i := range queries {
			queries[i] = sdk.Query{Text: long, Vector: direction(i)}
		}
		_, err = s.Retrieve(ctx, collection, dense, queries)
	default:
		b := items(n)
		for i := range b.Items {
			b.Items[i].ID = fmt.Sprint(i, long)
		}
		_, err = results(ctx, s, l.stage.Kind, b)
	}
	if failed := (sdk.RowErrors)(nil); errors.As(err, &failed) {
		return nil // it says so, row by row, and that is all that can be wanted
	}
	return err
}
