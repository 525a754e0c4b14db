package launch_test

import (
	"context"
	"errors"
	"testing"

	"github.com/racflow/racflow/engine/launch"
	"github.com/racflow/racflow/engine/pipeline"
)

// An embedder is started with what an earlier one has resolved, and the block stays as
// the file has it.
func TestResolvedValues(t *testing.T) {
	block := &pipeline.Knowledge{Name: "k", Embed: &pipeline.Stage{Use: "e", Config: pipeline.Config{Open: []byte(`{"model":"m"}`)}}}
	var config, state string
	none := errors.New("nothing is started here")
	starter := launch.Knowledge(block, func(_ context.Context, r launch.Request) (any, error) {
		config, state = string(r.Stage.Config.Open), string(r.State)
		return nil, none
	})
	for resolved, want := range map[string]string{"": `{"model":"m"}`, `{"precision":"half"}`: `{"model":"m","precision":"half"}`} {
		_, err := starter.Embedder(t.Context(), []byte("s"), []byte(resolved))
		if !errors.Is(err, none) || config != want || state != "s" || string(block.Embed.Config.Open) != `{"model":"m"}` {
			t.Errorf("resolved %s: started with %s and state %q, %v", resolved, config, state, err)
		}
	}
}
