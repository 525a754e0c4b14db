package engine_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"slices"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/enginetest"
)

// builtin is what main keeps of its first statement, for a program
// Serve(plugins.All()). A test has no main of its own, so it is done before
// that, with small stages.
var builtin = engine.Serve(enginetest.Stages())

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
	fmt.Println(plan.Embed, "entries to embed,", plan.Items, "items")
	// Output: 560 entries to embed, 3 items
}

func ExamplePipeline_Evaluate() {
	ctx := context.Background()
	p, done := open(ctx)
	defer done()
	found, err := p.Evaluate(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d items with a label: accuracy %.2f, between %.2f and %.2f\n", found.Scored, found.Accuracy, found.Low, found.High)
	// Output: 3 items with a label: accuracy 0.67, between 0.21 and 0.94
}
