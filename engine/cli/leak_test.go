package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/serve"
)

// leakConfig is the config of a voter that reveals its key in a chosen way.
type leakConfig struct {
	Key   string `config:"key,required,secret" doc:"What it tells."`
	Token string `config:"token,required" doc:"The same; its declaration does not say that it is secret."`
	How   string `config:"how,required" doc:"How it tells: open, error, row, panic."`
}

// leakPlugin is the main function of a third-party plugin; see TestMain.
func leakPlugin() {
	stage := sdk.SampleStage("voter", "", func(_ context.Context, s sdk.Setup, c leakConfig) (sdk.Sampler, error) {
		fmt.Fprintln(os.Stderr, "opened with", c.Key, c.Token)
		s.Log.Info("opened with "+c.Key, "token", c.Token)
		if c.How == "open" {
			return nil, errors.New("cannot open with " + c.Key + " and " + c.Token)
		}
		return leak{c}, nil
	})
	serve.Plugin(sdk.Plugin{Name: "leak", Version: "0.1.0", Stages: append(gossipStages(), stage)})
}

type leak struct{ config leakConfig }

func (l leak) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	err := fmt.Errorf("refused %s and %q", l.config.Key, l.config.Token)
	switch l.config.How {
	case "quiet":
		return make([][]sdk.Sample, len(b.Items)), nil
	case "panic":
		panic(err)
	case "row":
		return make([][]sdk.Sample, len(b.Items)), sdk.RowErrors{0: err}
	}
	return nil, err
}

// TestNobodyLearnsASecret runs a plugin that reveals its secrets in every way it can: no result,
// message or file contains them.
func TestNobodyLearnsASecret(t *testing.T) {
	for _, how := range []string{"open", "error", "row", "panic"} {
		t.Run(how, func(t *testing.T) {
			dir := folder(t, map[string]string{"leak.hcl": leakFile, "rows.tsv": "text\tlabel\nwhere is it\tstatus\n"})
			linkPlugin(t, dir, "leak")
			c := racflow(t, dir, "run", "--plugins", ".", "-var", "how="+how, "leak.hcl")
			c.Env = append(os.Environ(), "LEAK_KEY=sk-hush", "LEAK_TOKEN=tok\"hush&", "RACFLOW_LOG=debug")
			code, stdout, stderr := ran(t, c)
			if code == 0 {
				t.Error("the run succeeds")
			}
			if strings.Contains(stdout+stderr, "hush") {
				t.Errorf("a secret is reported:\n%s%s", stdout, stderr)
			}
			if !strings.Contains(stderr, "opened with (secret)") {
				t.Errorf("what the plugin says is not reported:\n%s", stderr)
			}
			checkFiles(t, dir, "hush")
		})
	}
}

const leakFile = `
variable "how" { type = string }
knowledge "k" {
  source { path = "rows.tsv" }
  embed { use = "hashing" }
  store { use = "local" }
}
pipeline "p" {
  input { path = "rows.tsv" }
  retrieve "near" { from = knowledge.k }
  sample "voter" {
    use     = "leak/voter"
    retries = 0
    config {
      key   = secret("LEAK_KEY")
      token = "Bearer ${secret("LEAK_TOKEN")}"
      how   = var.how
    }
  }
  elect "e" { use = "soft" }
}
`
