package page

import (
	"context"
	_ "embed" // of the assets
	"html/template"

	"github.com/racflow/racflow/engine/internal/measure/eval"
)

// This file makes the page that shows two runs side by side: their figures, the labels and items that they answer
// differently, and the differences between their manifests. Package eval compares the runs.

var (
	//go:embed assets/compare.html
	compareBody string
	//go:embed assets/compare.js
	compareModule string
)

// compared is an item that the runs answer differently.
type compared struct {
	Line     int    `json:"line"` // in the input of B
	ID       string `json:"id"`
	Text     string `json:"text"`
	Expected string `json:"expected"`
	A        string `json:"a"`
	B        string `json:"b"`
	State    string `json:"state"` // g: only B is right, l: only A is right, c: unknown
}

// ComparePage returns the page of two runs and of their comparison.
func ComparePage(ctx context.Context, a, b ReportedRun, c *eval.RunComparison) (Page, error) {
	before, _, err := measure(ctx, a)
	if err != nil {
		return Page{}, err
	}
	after, items, err := measure(ctx, b)
	if err != nil {
		return Page{}, err
	}
	texts := map[int]string{}
	for _, one := range items {
		texts[one.line] = one.text
	}
	rows := []compared{}
	for _, i := range c.Items[:min(len(c.Items), mostRows)] {
		row := compared{i.Line, i.ID, texts[i.Line], i.Expected, beginning(i.A), beginning(i.B), "g"}
		switch {
		case i.Expected == "":
			row.State = "c"
		case i.Lost:
			row.State = "l"
		}
		rows = append(rows, row)
	}
	data := map[string]any{
		"runs": []about{describe(a, before), describe(b, after)}, "both": c.Both, "only_a": c.OnlyA, "only_b": c.OnlyB,
		"flips": some(c.Flips), "items": rows, "manifest": some(c.Manifest),
	}
	if r := c.Right; r != nil {
		data["right"] = map[string]any{"difference": r.Difference(), "gained": r.Gained, "lost": r.Lost, "items": r.Items, "chance": r.Chance()}
	}
	return Page{
		Title: a.ID() + " and " + b.ID(), Brand: "racflow report", Body: template.HTML(compareBody), Data: data, //nolint:gosec // an asset of this program
		Modules: []string{Table, Chart, Item, figuresModule, itemsModule, compareModule}, Charts: true,
	}, nil
}
