package engine_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"slices"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/measure/eval"
)

// builtin is what main keeps of its first statement, for a program
// Serve(plugins.All()). A test has no main of its own, so it is done before
// that, with small stages.
var builtin = engine.Serve(append(enginetest.Stages(), enginetest.Alphabet(), enginetest.TheirsFile(), paid(), asker(), moody()))

// open opens a pipeline.
func open(ctx context.Context) (p *engine.Pipeline, done func()) {
	state, err := os.MkdirTemp("", "racflow-example-*")
	if err != nil {
		log.Fatal(err)
	}
	p, err = engine.Open(ctx, "testdata/intent.hcl", engine.Options{
		Builtin: builtin,
		State:   state,
		Limit:   3,
	})
	if err != nil {
		log.Fatal(err)
	}
	return p, func() {
		p.Close()
		os.RemoveAll(state)
	}
}

func ExamplePipeline_Answer() {
	ctx := context.Background()
	p, done := open(ctx)
	defer done()
	r, err := p.Answer(ctx, engine.Item{Text: "where is my parcel?"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Answer)
	// Output: delivery_missing_parcel
}

func ExamplePipeline_Run() {
	ctx := context.Background()
	p, done := open(ctx)
	defer done()
	items := slices.Values([]engine.Item{
		{ID: "a", Text: "where is my parcel?"},
		{ID: "b"}, // it fails alone
		{ID: "c", Text: "please cancel my order"},
	})
	for r, err := range p.Run(ctx, items) {
		switch {
		case err != nil:
			log.Fatal(err)
		case r.Error != nil:
			fmt.Printf("%s failed: %v\n", r.ID, r.Error)
		default:
			fmt.Printf("%s: %s\n", r.ID, r.Answer)
		}
	}
	// Output:
	// a: delivery_missing_parcel
	// b failed: the text is empty
	// c: order_cancel
}

func ExamplePipeline_Run_input() {
	ctx := context.Background()
	p, done := open(ctx)
	defer done()
	n := 0
	for r, err := range p.Run(ctx, nil) { // the items of the file's input
		if err != nil {
			log.Fatal(err)
		}
		if r.Expected != "" {
			n++
		}
	}
	fmt.Println(n, "items with a label")
	// Output: 3 items with a label
}

func ExamplePipeline_Retrieve() {
	ctx := context.Background()
	p, done := open(ctx)
	defer done()
	found, err := p.Retrieve(ctx, engine.Item{Text: "please cancel my order"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(found), found[0].Label, found[0].Text)
	// Output: 60 order_cancel Please cancel my order, I found the same thing in my cupboard.
}

func ExamplePipeline_Plan() {
	ctx := context.Background()
	p, done := open(ctx)
	defer done()
	plan, err := p.Plan(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, k := range plan.Knowledge {
		fmt.Printf("%s: %d entries to embed\n", k.Name, k.Added)
	}
	fmt.Println(plan.Items, "items")
	// Output:
	// utterances: 560 entries to embed
	// 3 items
}

func ExamplePipeline_Evaluate() {
	ctx := context.Background()
	p, done := open(ctx)
	defer done()
	found, err := p.Evaluate(ctx, eval.Options{Sweep: []eval.Target{{Name: "near.top_k", Values: []string{"1", "60"}}}})
	if err != nil {
		log.Fatal(err)
	}
	for _, row := range found.Rows {
		fmt.Println(row.Set, row.Report.Scored, "items with a label")
	}
	// Output:
	// [1] 3 items with a label
	// [60] 3 items with a label
}
