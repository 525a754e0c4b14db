package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/plan"
	"github.com/racflow/racflow/engine/report"
)

func newModelProbe() *cobra.Command {
	var flags fileFlags
	var asked modelFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "probe FILE | --base-url URL --model NAME",
		Short: "Find out what a language model takes, by at most four short calls",
		Long: `Find out what the language models take that a file's stages ask, by at most four
short calls for each: temperature, stop, n, seed and logprobs; max_tokens or
max_completion_tokens; answers by a JSON schema, as a JSON object, by a tool call or
as text alone; whether the model thinks first, and how many tokens that takes;
whether replies count tokens; bytes per token, and the tokens that the chat template
adds; whether the server answers by streams alone.

What is found is the model's profile. It is kept in the state folder by endpoint and
model, and requests follow it: what a model refuses is left out, and one that thinks
gets room for it. A run does the same before its first call of a model that has no
profile, unless the stage's config says probe = false, and learns from what its
calls are refused for. So this command is for a model that has changed, and for
knowing before a run. Four calls do not tell everything of every model: the rest
stays unknown, and is learned from the calls of a run.

Profiles are JSON files that may be edited: racflow model profiles lists them. A
profile block in the stage's config goes before them.

A FILE's limits and budget count for the calls. Without one, the key is read from the
environment variable that --key names.`,
		Example: `  racflow model probe pipelines/intent.hcl -var model=gpt-4o-mini --stage sample.llm
  racflow model probe --base-url http://127.0.0.1:8080/v1 --model some-model`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := asked.check(args); err != nil {
				return err
			}
			show := func(found []plan.Model, err error) error {
				if len(found) == 0 && err == nil {
					fmt.Fprintln(c.ErrOrStderr(), "no stage that is on asks a language model, so nothing was probed")
				}
				if len(found) > 0 {
					err = errors.Join(writeModels(c.OutOrStdout(), found, asJSON), err)
				}
				return err
			}
			if len(args) == 1 {
				return flags.pipelineOf(c, args[0], nil, func(_ *app, p *engine.Pipeline) error {
					return show(p.Probe(c.Context(), asked.stage))
				})
			}
			return flags.files(c, func(a *app) error { return show(a.ProbeModel(c.Context(), "openai", asked.config())) })
		},
	}
	flags.register(c)
	asked.register(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON list")
	return c
}

// modelFlags say which models to probe.
type modelFlags struct{ stage, baseURL, model, endpoint, key string }

func (f *modelFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.stage, "stage", "", "probe what one `STAGE` of the file asks, such as sample.llm")
	c.Flags().StringVar(&f.baseURL, "base-url", "", "address of the server, as base_url in a file, in place of a file")
	c.Flags().StringVar(&f.model, "model", "", "`NAME` of the model there")
	c.Flags().StringVar(&f.endpoint, "endpoint", "chat", "how the model there is asked: chat or completions")
	c.Flags().StringVar(&f.key, "key", "", "environment `VARIABLE` that holds the key for the server there")
	c.MarkFlagsRequiredTogether("base-url", "model")
}

func (f *modelFlags) check(args []string) error {
	switch {
	case len(args) == 0 && f.model == "":
		return errors.New("name a pipeline file, or give --base-url and --model")
	case len(args) == 1 && f.model != "":
		return errors.New("a file says itself which models it asks: give either it, or --base-url and --model")
	case len(args) == 0 && f.stage != "":
		return errors.New("--stage chooses one of a file's stages: name the file")
	case f.key != "" && os.Getenv(f.key) == "":
		return fmt.Errorf("the environment variable %s, which --key names, is not set", f.key)
	}
	return nil
}

// config is that of the voter that would ask the model.
func (f *modelFlags) config() []byte {
	config := map[string]string{"base_url": f.baseURL, "model": f.model, "endpoint": f.endpoint}
	if f.key != "" {
		config["api_key"] = os.Getenv(f.key)
	}
	raw, _ := json.Marshal(config) // of texts
	return raw
}

func writeModels(w io.Writer, all []plan.Model, asJSON bool) error {
	if !asJSON {
		return report.Models(w, all)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(all)
}

func newModelProfiles() *cobra.Command {
	var flags fileFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "profiles",
		Short: "List what is known of language models, and the files that hold it",
		Long: `List what is known of the language models that were asked with the state folder,
each with its file. A file may be edited: the next run follows it. One that is
removed is found out again. A run that is resumed keeps the profiles that it began
with.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return flags.files(c, func(a *app) error {
				kept, err := a.Profiles()
				if err != nil {
					return err
				}
				all := []plan.Model{}
				for _, k := range kept {
					all = append(all, plan.Model{Endpoint: k.Endpoint, Name: k.Model, Profile: k.Profile, File: k.File})
				}
				if len(all) == 0 && !asJSON {
					fmt.Fprintln(c.ErrOrStderr(), "nothing is known of any model yet")
				}
				return writeModels(c.OutOrStdout(), all, asJSON)
			})
		},
	}
	c.Flags().StringVar(&flags.state, "state", stateDir, "`DIR` that keeps the profiles")
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON list")
	return c
}
