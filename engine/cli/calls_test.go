package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/serve"
)

// oracleConfig is the config of a voter that would call a service that does not exist: it records
// what it would have asked.
type oracleConfig struct {
	Answer string `config:"answer,required" doc:"What it answers."`
	Asked  string `config:"asked,required" doc:"The file that gets a line for each call."`
	Tokens int    `config:"tokens" default:"100" doc:"What it expects a call to take; it takes half."`
	Down   bool   `config:"down" doc:"Every call fails."`
}

// oraclePlugin is the main function of a third-party plugin; see TestMain.
func oraclePlugin() {
	stage := sdk.SampleStage("voter", "", func(_ context.Context, s sdk.Setup, c oracleConfig) (sdk.Sampler, error) {
		return oracle{c, s.Host, s.Samples}, nil
	}, sdk.Network(), sdk.PreferBatch(1), sdk.Reads(sdk.ColumnText))
	serve.Plugin(sdk.Plugin{Name: "oracle", Version: "0.1.0", Stages: []sdk.Stage{stage}})
}

type oracle struct {
	config  oracleConfig
	host    sdk.Host
	samples int
}

func (o oracle) Sample(ctx context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	all := make([][]sdk.Sample, len(b.Items))
	for i, item := range b.Items {
		for n := range o.samples {
			answer, err := o.ask(ctx, item.Text, item.Drawn+n)
			if err != nil {
				return nil, err
			}
			all[i] = append(all[i], sdk.Sample{Answers: []sdk.Answer{{Label: answer, Weight: 1}}})
		}
	}
	return all, nil
}

func (o oracle) ask(ctx context.Context, text string, n int) (string, error) {
	key := sdk.KeyOf(text, fmt.Sprint(n))
	kept, err := o.host.CacheGet(ctx, []sdk.Key{key})
	if err != nil {
		return "", err
	}
	if kept[0] != nil {
		return string(kept[0]), nil
	}
	release, err := o.host.Acquire(ctx, sdk.Call{Endpoint: "http://oracle.example/v1", Tokens: o.config.Tokens})
	if err != nil {
		return "", err
	}
	time.Sleep(time.Millisecond)
	if o.config.Down {
		release(sdk.Result{Status: sdk.StatusDown})
		return "", sdk.Transient(errors.New("the oracle is silent"), 0)
	}
	f, err := os.OpenFile(o.config.Asked, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(f, text, n)
		err = errors.Join(err, f.Close())
	}
	half := uint64(o.config.Tokens / 2)
	release(sdk.Result{Status: sdk.StatusOK, Usage: sdk.Usage{InputTokens: half - half/5, OutputTokens: half / 5}})
	return o.config.Answer, errors.Join(err, o.host.CachePut(ctx, key, []byte(o.config.Answer)))
}
