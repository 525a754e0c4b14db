package minilm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/racflow/racflow/sdk"
)

type stageConfig struct {
	Model sdk.Path `config:"model" doc:"Folder of the model's files; where it is not given, the folder that racflow model pull minilm fills."`
}

// Stage describes the embedder.
func Stage() sdk.Stage {
	return sdk.EmbedStage("minilm", "Embeds with all-MiniLM-L6-v2 (384 dimensions, English), or another model of its kind, on this machine's CPU.",
		open, sdk.Revision("1"), sdk.PreferBatch(64))
}

func open(_ context.Context, _ sdk.Setup, c stageConfig) (sdk.Embedder, error) {
	dir := string(c.Model)
	if dir == "" {
		var err error
		if dir, err = sdk.ModelDir("minilm"); err != nil {
			return nil, err
		}
		if _, err := os.Stat(filepath.Join(dir, weightsFile)); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("the model is not on this machine (%s): racflow model pull minilm brings it; "+
				"hashing is an embedder that needs no model, at a lower accuracy", dir)
		}
	}
	m, err := Load(dir)
	if err != nil && c.Model == "" {
		return nil, fmt.Errorf("%w; racflow model pull minilm brings the model anew", err)
	}
	if err != nil {
		return nil, &sdk.ArgumentError{Argument: "model", Err: err}
	}
	return embedder{m}, nil
}

// embedder is the model as a stage. It embeds queries and passages alike.
type embedder struct{ *Model }

func (e embedder) Dimension() int { return e.Dim() }

func (e embedder) Embed(ctx context.Context, _ sdk.Role, texts []string) ([][]float32, error) {
	return e.Encode(ctx, texts)
}
