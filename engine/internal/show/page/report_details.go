package page

import (
	"context"
	_ "embed" // of the assets
	"encoding/json"
	"fmt"
	"html/template"

	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/run/result"
	"github.com/racflow/racflow/engine/internal/show/explain"
	"github.com/racflow/racflow/sdk"
)

var (
	//go:embed assets/compare.html
	compareBody string
	//go:embed assets/compare.js
	compareModule string
)

// pair is one item with the answers of two runs.
type pair struct {
	A *packed `json:"a"` // nil: the run no longer has this item
	B *packed `json:"b"`
}

// ComparePage returns the page of a comparison of two runs.
func ComparePage(ctx context.Context, r *eval.RunComparison, a, b ReportedRun) (Page, error) {
	ofA, itemsA, err := measure(ctx, a)
	if err != nil {
		return Page{}, err
	}
	ofB, itemsB, err := measure(ctx, b)
	if err != nil {
		return Page{}, err
	}
	linesA, namesB, texts := map[string]int{}, map[int]string{}, map[int]string{}
	for line, name := range names(itemsA) {
		linesA[name] = line
	}
	for line, name := range names(itemsB) {
		namesB[line] = name
	}
	for _, o := range itemsB {
		texts[o.line] = o.text
	}
	changed := r.Items[:min(len(r.Items), mostRows)]
	wantA, wantB := map[int]bool{}, map[int]bool{}
	list := make([]one, 0, len(changed))
	for _, item := range changed {
		wantB[item.Line] = true
		if line, ok := linesA[namesB[item.Line]]; ok {
			wantA[line] = true
		}
		list = append(list, one{line: item.Line, id: item.ID, text: texts[item.Line], expected: item.Expected, answer: item.B, state: change(item)})
	}
	kept, before := newDetails(), map[int]*explain.Item{}
	for item, err := range a.Items(ctx, func(b *explain.Brief) bool { return wantA[b.Line] }) {
		if err != nil {
			return Page{}, err
		}
		before[item.Line] = item
	}
	err = kept.read(ctx, b, wantB, func(it *explain.Item) any {
		p := pair{B: kept.pack(it)}
		if old := before[linesA[namesB[it.Line]]]; old != nil {
			p.A = kept.pack(old)
		}
		return p
	})
	if err != nil {
		return Page{}, err
	}
	blocks, err := kept.blocks()
	if err != nil {
		return Page{}, err
	}
	rows, answersA := columns(list, kept), make([]string, len(changed))
	for i, item := range changed {
		answersA[i] = beginning(item.A)
	}
	rows["a"] = answersA
	short := *r
	short.Items = nil // rows has them
	return Page{
		Title: fmt.Sprintf("%s and %s", r.A.Run, r.B.Run), Brand: "racflow report", Body: template.HTML(compareBody), //nolint:gosec // an asset of this program
		Data:    map[string]any{"report": short, "a": describe(a, ofA), "b": describe(b, ofB), "items": rows, "all": len(r.Items), "explained": kept.items},
		Blocks:  blocks,
		Modules: []string{Table, Chart, Item, figuresModule, itemsModule, compareModule}, Charts: true,
	}, nil
}

// change returns the state of an item with different answers: l lost, g gained, c changed, if
// nobody knows which answer is right.
func change(item eval.ChangedItem) string {
	switch {
	case item.Expected == "":
		return "c"
	case item.Lost:
		return "l"
	}
	return "g"
}

// names gives each item, by line, the name that matches it with the other run's: see package eval.
func names(items []one) map[int]string {
	all, seen := map[int]string{}, map[string]int{}
	for _, o := range items {
		if o.is("u") {
			continue
		}
		seen[o.id]++
		all[o.line] = fmt.Sprintf("%d %s", seen[o.id], o.id)
	}
	return all
}

const (
	together = 100       // most items of a block
	enough   = 512 << 10 // bytes of JSON at which a block ends
	most     = 12 << 20  // compressed bytes of all blocks: the page stays below 15 MB
	mostOf   = 4000      // most characters of a candidate's text
)

// details collects what made answers, in blocks.
type details struct {
	done    []Block
	pending []json.RawMessage
	waiting int         // bytes of pending
	at      map[int]int // an item's place, by its line
	items   int
	size    int // bytes of done, and about as many as entries will take
	full    bool

	entries entries
	known   map[string]int // a candidate's place in entries
}

// entries holds the candidates of all items, each once, by columns.
type entries struct {
	ID    []string   `json:"id"`
	Label []string   `json:"label"`
	Text  []string   `json:"text"`
	Meta  []sdk.Meta `json:"meta"`
}

func newDetails() *details { return &details{at: map[int]int{}, known: map[string]int{}} }

// read adds what made the answers of the items on the wanted lines of a run, until the page is
// full. form converts an item for the page.
func (d *details) read(ctx context.Context, run ReportedRun, wanted map[int]bool, form func(*explain.Item) any) error {
	if len(wanted) == 0 || d.full {
		return nil
	}
	for item, err := range run.Items(ctx, func(b *explain.Brief) bool { return wanted[b.Line] }) {
		if err != nil {
			return err
		}
		if err := d.add(item.Line, form(item)); err != nil {
			return err
		}
		if d.full {
			break
		}
	}
	return nil
}

// add adds the item of a line, in the form that the page gets.
func (d *details) add(line int, item any) error {
	text, err := json.Marshal(item)
	if err != nil {
		return fmt.Errorf("item of line %d: %w", line, err)
	}
	d.at[line] = len(d.done)*together + len(d.pending)
	d.items++
	d.pending, d.waiting = append(d.pending, text), d.waiting+len(text)
	if len(d.pending) < together && d.waiting < enough {
		return nil
	}
	return d.close()
}

// close ends the present block.
func (d *details) close() error {
	if len(d.pending) == 0 {
		return nil
	}
	packed, err := Pack(d.pending)
	if err != nil {
		return err
	}
	d.done = append(d.done, Block{ID: fmt.Sprintf("made-%d", len(d.done)), Data: packed})
	d.pending, d.waiting = nil, 0
	d.size += len(packed)
	d.full = d.size > most
	return nil
}

// blocks returns the finished blocks for the page.
func (d *details) blocks() ([]Block, error) {
	err := d.close()
	return append(d.done, Block{ID: "entries", Data: d.entries}), err
}

// place returns the number of an item's block times 100, plus its place in the block; -1: the page
// does not have it.
func (d *details) place(line int) int {
	if at, ok := d.at[line]; ok {
		return at
	}
	return -1
}

// packed is an item that refers to its candidates by their places in entries.
type packed struct {
	*explain.Item
	Lists      []list  `json:"lists,omitempty"`
	Candidates [][]any `json:"candidates,omitempty"`
}

type list struct {
	Stage      string  `json:"stage"`
	Candidates [][]any `json:"candidates"`
}

// pack converts an item for the page.
func (d *details) pack(it *explain.Item) *packed {
	p := &packed{Item: it, Candidates: d.refer(it.Candidates)}
	for _, l := range it.Lists {
		p.Lists = append(p.Lists, list{l.Stage, d.refer(l.Candidates)})
	}
	return p
}

// refer returns candidates as [place, score], or [place, score, dense, lexical].
func (d *details) refer(found []result.Candidate) (all [][]any) {
	for _, c := range found {
		key := c.ID + "\x00" + c.Text
		at, ok := d.known[key]
		if !ok {
			at = len(d.entries.ID)
			d.known[key] = at
			text := cut(c.Text, mostOf)
			d.entries.ID, d.entries.Label, d.entries.Text, d.entries.Meta = append(d.entries.ID, c.ID), append(d.entries.Label, c.Label), append(d.entries.Text, text), append(d.entries.Meta, c.Meta)
			d.size += len(text)/2 + len(c.ID)
		}
		one := []any{at, c.Score}
		if c.Dense != nil || c.Lexical != nil {
			one = append(one, c.Dense, c.Lexical)
		}
		all = append(all, one)
	}
	return all
}
