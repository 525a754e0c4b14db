package stage_test

import (
	"context"
	"errors"
	"testing"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/run/stage"
)

// An embedder is started with the values that an earlier embedder has resolved, and the block stays
// unchanged.
func TestResolvedValues(t *testing.T) {
	block := &pipeline.Knowledge{Name: "k", Embed: &pipeline.Stage{Use: "e", Config: pipeline.Config{Open: []byte(`{"model":"m"}`)}}}
	var config, state string
	none := errors.New("nothing is started here")
	starter := stage.LaunchKnowledge(block, func(_ context.Context, r stage.LaunchRequest) (any, error) {
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
