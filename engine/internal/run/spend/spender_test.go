package spend_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/spend"
	"github.com/racflow/racflow/sdk"
)

// An item that is handed out again while it is under way waits for its turn, and has a bill of its own.
func TestClerkWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		voter := &pipeline.Stage{Block: "sample", Name: "llm", N: 1}
		c := spend.NewAsker(spend.Options{Forecast: func(*pipeline.Stage, sdk.Item) (sdk.Forecast, error) { return sdk.Forecast{Requests: 1}, nil }})
		if err := c.Begin(t.Context(), []int{1, 2}, false); err != nil {
			t.Fatal(err)
		}
		stopped, stop := context.WithCancel(t.Context())
		refused, begun := make(chan error, 1), make(chan error, 1)
		go func() { refused <- c.Begin(stopped, []int{3, 2}, true) }()
		go func() { begun <- c.Begin(t.Context(), []int{2, 4}, true) }()
		synctest.Wait()
		if stop(); !errors.Is(<-refused, context.Canceled) {
			t.Error("it begins although its batch was given back")
		}
		if c.Ask(voter, 2, sdk.Item{}) || len(begun) > 0 {
			t.Error("what is under way is asked as the next batch is")
		}
		one := outcome.Bill{Calls: 1}
		if bills := c.End([]int{1, 2}); len(bills) != 1 || bills[1] != one {
			t.Errorf("%+v", bills)
		}
		if err := <-begun; err != nil || !c.Ask(voter, 2, sdk.Item{}) {
			t.Errorf("it is not asked: %v", err)
		}
		if bills := c.End([]int{2, 4}); len(bills) != 1 || bills[0] != one {
			t.Errorf("%+v", bills)
		}
		if err := c.Begin(t.Context(), []int{3}, true); err != nil {
			t.Error(err)
		}
	})
}
