package cli

import (
	"context"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/flat"
	"github.com/racflow/racflow/sdk/serve"
)

func init() { programs["racflow-plugin-swap"] = swapPlugin }

// swapPlugin is the main function of a plugin that offers a replacement for each stage that a
// variable swaps in the shipped pipelines.
func swapPlugin() {
	serve.Plugin(sdk.Plugin{Name: "swap", Version: "0.1.0", Stages: []sdk.Stage{
		sdk.EmbedStage("swap", "", func(context.Context, sdk.Setup, struct{}) (sdk.Embedder, error) { return mine{}, nil }),
		sdk.StoreStage("swap", "", func(context.Context, sdk.Setup, struct{}) (sdk.Store, error) { return flat.New(&swapPlace{}), nil }, sdk.Filters()),
		sdk.SampleStage("swap", "", func(_ context.Context, _ sdk.Setup, c swapConfig) (sdk.Sampler, error) { return c, nil }, sdk.Reads(sdk.ColumnPrompts)),
	}})
}

// swapPlace is a place whose collections end with the process.
type swapPlace struct{ contents sync.Map }

func (p *swapPlace) Load(_ context.Context, name string) ([]byte, error) {
	if content, ok := p.contents.Load(name); ok {
		return content.([]byte), nil
	}
	return nil, fs.ErrNotExist
}

func (p *swapPlace) Save(_ context.Context, name string, content []byte) error {
	p.contents.Store(name, content)
	return nil
}

func (p *swapPlace) Remove(_ context.Context, name string) error {
	p.contents.Delete(name)
	return nil
}

func (p *swapPlace) Names(context.Context) (names []string, err error) {
	p.contents.Range(func(name, _ any) bool {
		names = append(names, name.(string))
		return true
	})
	return names, nil
}

// swapConfig holds the arguments that the model block gives to a plugin's stage.
type swapConfig struct {
	Model string `config:"model,required" doc:"Its name is its answer."`
}

func (c swapConfig) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	all := make([][]sdk.Sample, len(b.Items))
	for i := range all {
		all[i] = []sdk.Sample{{Answers: []sdk.Answer{{Label: c.Model, Weight: 1}}}}
	}
	return all, nil
}

// The shipped pipelines use another embedder, store and model after one word on the command line.
func TestOneWord(t *testing.T) {
	dir := t.TempDir()
	linkPlugin(t, dir, "swap")
	write(t, dir, "train.tsv", fewIntents(t))
	t.Setenv("RACFLOW_VAR_train", filepath.Join(dir, "train.tsv"))
	for file, model := range map[string]string{"intent.hcl": "refund_status", "contextual.hcl": "an answer", "keywords.hcl": "", "rac.hcl": "refund_status", "rage.hcl": "refund_status", "zero-shot.hcl": "refund_status"} {
		args := []string{"run", "--plugins", ".", "--limit", "3", "--format", "jsonl"}
		if file != "zero-shot.hcl" {
			args = append(args, "-var", "embedder=swap/swap", "-var", "store=swap/swap")
		}
		if model != "" {
			args = append(args, "-var", "provider=swap/swap", "-var", "model="+model)
		}
		out, _ := good(t, racflow(t, dir, append(args, absolute(t, "../../pipelines/"+file))...))
		if strings.Count(out, "\n") != 3 || model != "" && !strings.Contains(out, `"voter":"llm`) {
			t.Errorf("%s:\n%.2000s", file, out)
		}
	}
}
