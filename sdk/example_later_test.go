package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/racflow/racflow/sdk"
)

// frequent votes for the most frequent label of the rows. What it has learnt is in its folder, where
// a later process reads it.
type frequent struct{ file, label string }

func (f *frequent) Fit(_ context.Context, rows iter.Seq2[[]sdk.TrainingRow, error]) error {
	counts := map[string]int{}
	for batch, err := range rows {
		if err != nil {
			return err
		}
		for _, row := range batch {
			if counts[row.Label]++; counts[row.Label] > counts[f.label] {
				f.label = row.Label
			}
		}
	}
	return os.WriteFile(f.file, []byte(f.label), 0o600)
}

func (f *frequent) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	all := make([][]sdk.Sample, len(b.Items))
	for i := range all {
		all[i] = []sdk.Sample{{Answers: []sdk.Answer{{Label: f.label, Weight: 1}}}}
	}
	return all, nil
}

func ExampleFits() {
	dir, err := os.MkdirTemp("", "state")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	stage := sdk.SampleStage("frequent", "Votes for the most frequent label.",
		func(_ context.Context, s sdk.Setup, _ struct{}) (sdk.Sampler, error) {
			f := &frequent{file: filepath.Join(s.StateDir, "label")}
			learnt, err := os.ReadFile(f.file)
			if f.label = string(learnt); errors.Is(err, os.ErrNotExist) {
				err = nil // the engine will call Fit
			}
			return f, err
		}, sdk.Fits())
	open := func() any {
		opened, err := stage.Open(context.Background(), sdk.Setup{StateDir: dir}, []byte(`{}`))
		if err != nil {
			log.Fatal(err)
		}
		return opened
	}
	err = open().(sdk.Fitter).Fit(context.Background(), func(yield func([]sdk.TrainingRow, error) bool) {
		yield([]sdk.TrainingRow{{ID: "1", Label: "cash"}, {ID: "2", Label: "card"}, {ID: "3", Label: "card"}}, nil)
	})
	fmt.Println(err)
	samples, err := open().(sdk.Sampler).Sample(context.Background(), batch("which?"))
	fmt.Println(samples[0][0].Answers[0].Label, err)
	// Output:
	// <nil>
	// card <nil>
}

// overnight passes items to a service that answers hours later.
type overnight struct{}

func (overnight) Sample(context.Context, sdk.Batch) ([][]sdk.Sample, error) {
	return nil, &sdk.Pending{Handle: "job-17", PollAfter: time.Hour} // the service's name for the job
}

func (overnight) CollectSamples(_ context.Context, handle string, b sdk.Batch) ([][]sdk.Sample, error) {
	all := make([][]sdk.Sample, len(b.Items))
	for i, item := range b.Items { // perhaps only some of the submitted items
		all[i] = []sdk.Sample{{Answers: []sdk.Answer{{Label: handle + " on " + item.Text, Weight: 1}}}}
	}
	return all, nil
}

func ExamplePends() {
	stage := sdk.SampleStage("overnight", "Asks a service by the batch.",
		func(context.Context, sdk.Setup, struct{}) (sdk.Sampler, error) { return overnight{}, nil },
		sdk.Reads(sdk.ColumnText), sdk.Network(), sdk.Pends())
	voter := opened[sdk.Sampler](stage, `{}`)
	_, err := voter.Sample(context.Background(), batch("a card"))
	fmt.Println(err)
	var later *sdk.Pending
	if errors.As(err, &later) { // the engine stores the handle and waits, perhaps in another process
		samples, err := voter.(sdk.SampleCollector).CollectSamples(context.Background(), later.Handle, batch("a card"))
		fmt.Println(samples[0][0].Answers[0].Label, err)
	}
	// Output:
	// the results come later, not before 1h0m0s have passed
	// job-17 on a card <nil>
}
