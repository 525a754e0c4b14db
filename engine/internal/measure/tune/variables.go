package tune

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/engine/internal/file/bounded"
	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk"
)

// Point measures a threshold on rows that it was not found on.
type Point struct {
	Threshold float64 `json:"threshold"` // mean over the items
	Sent      float64 `json:"sent"`      // share of the items that the threshold sends
	Accuracy  float64 `json:"accuracy"`
	Cost      float64 `json:"cost"` // of a thousand items

	right []float64 // by item: 1 or 0
}

// cell is the result of an item, with a threshold that was found without the item's fold.
type cell struct {
	threshold, right, cost float64
	sent                   bool
}

// point sums up the results of some items.
func point(cells []cell, items []int) Point {
	var p Point
	for _, i := range items {
		c := cells[i]
		if c.sent {
			p.Sent++
		}
		p.Threshold, p.Accuracy, p.Cost = p.Threshold+c.threshold, p.Accuracy+c.right, p.Cost+c.cost
		p.right = append(p.right, c.right)
	}
	n := float64(max(len(items), 1))
	p.Threshold, p.Sent, p.Accuracy, p.Cost = p.Threshold/n, p.Sent/n, p.Accuracy/n, 1000*p.Cost/n
	return p
}

// curve sums up the results of some items for each share.
func curve(cells [][]cell, items []int) (all []Point) {
	for _, of := range cells {
		all = append(all, point(of, items))
	}
	return all
}

// measure sets the results of items under a threshold.
func (w *work) measure(ctx context.Context, election *Election, items []int, at float64, cells []cell) error {
	for _, i := range items {
		cells[i] = cell{threshold: at}
	}
	results, err := election.Elect(ctx, w.pick(items), func(a AskRule) bool {
		if !w.asks(a.Stage.Name, a.Margin, a.Agreement, at) {
			return false
		}
		c := &cells[items[a.Item]]
		if d, ok := w.doubts[a.Stage.Name]; ok && d.variable == w.Variable {
			c.sent = true
		}
		if w.Cost != nil {
			c.cost += w.Cost(a.Stage.Name, a.Usage)
		}
		return true
	})
	for n, r := range results {
		if w.counter.Right(r) {
			cells[items[n]].right = 1
		}
	}
	return err
}

func (w *work) pick(items []int) []outcome.Result {
	all := make([]outcome.Result, len(items))
	for i, at := range items {
		all[i] = w.Results[at]
	}
	return all
}

// Goal is the goal for choosing a threshold. The zero Goal wants the best accuracy, and keeps the
// file's threshold unless another is better by more than chance.
type Goal struct {
	Accuracy *float64 // at least this, with the least share sent
	Share    *float64 // the best accuracy with at most this share sent
	Cost     *float64 // the best accuracy at no more than this for a thousand items
}

// choose returns the point of a curve, by rising share, that meets the goal.
func (g Goal) choose(curve []Point) (int, error) {
	switch {
	case g.Accuracy != nil:
		for k, p := range curve {
			if p.Accuracy >= *g.Accuracy {
				return k, nil
			}
		}
		top := best(curve, func(Point) bool { return true })
		return 0, fmt.Errorf("no threshold reaches an accuracy of %.4f: the best is %.4f, with %.1f %% of the items sent",
			*g.Accuracy, curve[top].Accuracy, 100*curve[top].Sent)
	case g.Share != nil:
		if k := best(curve, func(p Point) bool { return p.Sent <= *g.Share }); k >= 0 {
			return k, nil
		}
		return 0, fmt.Errorf("no threshold sends as little as %.1f %% of the items", 100**g.Share)
	case g.Cost != nil:
		if k := best(curve, func(p Point) bool { return p.Cost <= *g.Cost }); k >= 0 {
			return k, nil
		}
		return 0, fmt.Errorf("no threshold costs as little as %g for a thousand items: the least is %.4f", *g.Cost, curve[0].Cost)
	}
	return best(curve, func(Point) bool { return true }), nil
}

// best returns the most accurate allowed point, the cheapest of equals; -1: none is allowed.
func best(curve []Point, allowed func(Point) bool) int {
	at := -1
	for k, p := range curve {
		if allowed(p) && (at < 0 || p.Accuracy > curve[at].Accuracy) {
			at = k
		}
	}
	return at
}

// mark begins a comment in a file of variables. It names the file on which the variables were
// tuned, by its SHA-256 in hex.
const mark = "# tuned on sha256 "

// TunedOn returns the digests of the files on which the variables in a file were tuned.
func TunedOn(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []string
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, mark); ok {
			digest, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
			all = append(all, strings.TrimSuffix(digest, ","))
		}
	}
	return all, nil
}

// Found holds values of the election's arguments, by name: weights of voters and, if the election
// learns, the other arguments that it resolved.
type Found map[string]any

// Weighed returns the election stage of a pipeline with the found values instead of the file's;
// nil: with neither. An argument without a variable in the file keeps its value, because the found
// value could not be written.
func (s *Subject) Weighed(elect *pipeline.Stage, found Found) (*pipeline.Stage, error) {
	config := map[string]json.RawMessage{}
	if len(elect.Config.Open) > 0 {
		if err := json.Unmarshal(elect.Config.Open, &config); err != nil {
			return nil, err
		}
	}
	for name := range s.arguments() {
		delete(config, name)
		if value, ok := found[name]; ok {
			raw, err := json.Marshal(value)
			if err != nil {
				return nil, err
			}
			config[name] = raw
		}
	}
	weighed := *elect
	var err error
	weighed.Config.Open, err = json.Marshal(config)
	return &weighed, err
}

// arguments returns the election's arguments that get values, with their variables.
func (s *Subject) arguments() map[string]string {
	all := map[string]string{s.Argument: s.Weights}
	maps.Copy(all, s.More)
	return all
}

// Variables returns a file of variables for -var-file with the
// outcome. input is the name of the file that they were found on, digest its SHA-256, and items its
// number of scored rows.
func (s *Subject) Variables(o Outcome, items int, input, digest string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Written by racflow tune, for -var-file. Measure on other rows than these:\n%s%s, %d items of %q\n", mark, digest, items, input)
	if s.Variable != "" && !o.Stays {
		fmt.Fprintf(&b, "%s = %s\n", s.Variable, format(o.Threshold))
	}
	if o.Found != nil {
		s.writeFound(&b, o.Found)
	}
	return string(bounded.Format([]byte(b.String())))
}

// writeFound writes the found values of arguments that have variables.
func (s *Subject) writeFound(b *strings.Builder, found Found) {
	fmt.Fprintf(b, "%s = %s\n", s.Weights, hclOf(found[s.Argument]))
	for _, name := range slices.Sorted(maps.Keys(s.More)) {
		if value, ok := found[name]; ok {
			fmt.Fprintf(b, "%s = %s\n", s.More[name], hclOf(value))
		}
	}
}

func format(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }

// hclOf returns a text, number or bool as HCL, an object with a line for each name, and any other
// argument as JSON, which is HCL except for templates.
func hclOf(value any) string {
	if text, ok := value.(string); ok {
		return string(hclwrite.TokensForValue(cty.StringVal(text)).Bytes())
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return "null"
	}
	var object map[string]any
	if json.Unmarshal(raw, &object) != nil || object == nil {
		return string(raw)
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(object)) {
		key := name
		if !hclsyntax.ValidIdentifier(name) {
			key = hclOf(name)
		}
		value := hclOf(object[name])
		if x, ok := object[name].(float64); ok {
			value = format(x)
		}
		fmt.Fprintf(&b, "%s = %s\n", key, value)
	}
	return "{\n" + b.String() + "}"
}

// page is how many rows an election that learns gets at a time.
const page = 256

// fit finds the voters' weights on some items.
func (w *work) fit(ctx context.Context, items []int) (Found, error) {
	if w.Learns {
		w.progress("fitting the election", 0, 0)
		return w.Fit(ctx, func(yield func([]sdk.TrainingRow, error) bool) {
			for from := 0; from < len(items); from += page {
				var rows []sdk.TrainingRow
				for _, i := range items[from:min(from+page, len(items))] {
					r := w.Results[i]
					label := r.Expected
					if w.counter.Outside(r) {
						label = ""
					}
					rows = append(rows, sdk.TrainingRow{ID: r.ID, Text: r.Text, Label: label, Samples: w.samples[i], HeldOut: w.Rows > 0})
				}
				if !yield(rows, ctx.Err()) {
					return
				}
			}
		})
	}
	return Found{w.Argument: w.accuracies(items)}, nil
}

// accuracies estimates the accuracy of each voter's own answers, over the items with an acceptable
// answer of the voter: (right + 1) / (answered + 2), Laplace's rule of succession, so that no voter
// seems infallible because of few items.
func (w *work) accuracies(items []int) map[string]float64 {
	c := eval.NewCounter(w.Labels...)
	for _, i := range items {
		c.Add(w.Results[i])
	}
	all := map[string]float64{}
	for _, v := range c.Report(outcome.Totals{}).Voters {
		n := float64(v.Asked)
		if v.Accepted > 0 {
			all[v.Name] = math.Round(1e4*(v.Accuracy*n+1)/(v.Accepted*n+2)) / 1e4
		}
	}
	return all
}
