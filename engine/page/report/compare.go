package report

import (
	"context"
	_ "embed" // of the assets
	"fmt"
	"html/template"

	"github.com/racflow/racflow/engine/explain"
	"github.com/racflow/racflow/engine/journal/compare"
	"github.com/racflow/racflow/engine/page"
)

var (
	//go:embed assets/compare.html
	compareBody string
	//go:embed assets/compare.js
	compareModule string
)

// pair is an item as two runs answered it.
type pair struct {
	A *packed `json:"a"` // nil: the run has no such item any more
	B *packed `json:"b"`
}

// Compare returns the page of two runs that were compared.
func Compare(ctx context.Context, r *compare.Report, a, b Run) (page.Page, error) {
	ofA, itemsA, err := measure(ctx, a)
	if err != nil {
		return page.Page{}, err
	}
	ofB, itemsB, err := measure(ctx, b)
	if err != nil {
		return page.Page{}, err
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
			return page.Page{}, err
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
		return page.Page{}, err
	}
	blocks, err := kept.blocks()
	if err != nil {
		return page.Page{}, err
	}
	rows, answersA := columns(list, kept), make([]string, len(changed))
	for i, item := range changed {
		answersA[i] = beginning(item.A)
	}
	rows["a"] = answersA
	short := *r
	short.Items = nil // they are the rows
	return page.Page{
		Title: fmt.Sprintf("%s and %s", r.A.Run, r.B.Run), Brand: "racflow report", Body: template.HTML(compareBody), //nolint:gosec // an asset of this program
		Data:    map[string]any{"report": short, "a": describe(a, ofA), "b": describe(b, ofB), "items": rows, "all": len(r.Items), "explained": kept.items},
		Blocks:  blocks,
		Modules: []string{page.Table, page.Chart, page.Item, figuresModule, itemsModule, compareModule}, Charts: true,
	}, nil
}

// change is the state of an item that was answered differently: l lost, g gained, c changed,
// where nobody knows which answer is right.
func change(item compare.Item) string {
	switch item.Expected {
	case "":
		return "c"
	case item.A:
		return "l"
	}
	return "g"
}

// names are those by which the items of two runs are matched, by line: see package compare.
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
