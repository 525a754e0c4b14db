package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/schema"
	"github.com/racflow/racflow/sdk"
)

// kinds are all kinds of stages, in the order in which data meets them.
var kinds = []sdk.Kind{
	sdk.KindChunk, sdk.KindEnrich, sdk.KindEmbed, sdk.KindStore, sdk.KindRerank, sdk.KindPrompt, sdk.KindSample, sdk.KindElect,
}

func newStages() *cobra.Command {
	flags := fileFlags{state: stateDir}
	var asJSON, asMarkdown bool
	c := &cobra.Command{
		Use:   "stages [KIND[/NAME]]",
		Short: "List stages, or explain one: its arguments, bounds, defaults, and an example",
		Long: `List the stages that a pipeline file can use, those of one kind, or explain one:

    racflow stages
    racflow stages sample
    racflow stages sample/openai
    racflow stages rerank/mine/best     # of the plugin "mine"

A plugin that was never asked before is started to describe itself when its stage
is named; a list has those plugins only that have been asked.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			a, err := flags.open(c, nil)
			if err != nil {
				return err
			}
			defer a.close()
			kind, use, named := "", "", false
			if len(args) == 1 {
				kind, use, named = strings.Cut(args[0], "/")
				if !slices.Contains(kinds, sdk.Kind(kind)) {
					return fmt.Errorf("there is no kind %q; there are %s", kind, strings.Join(texts(kinds), ", "))
				}
			}
			stages, err := explain(a.Catalog(), sdk.Kind(kind), use)
			if err != nil {
				return err
			}
			out := c.OutOrStdout()
			switch {
			case asJSON:
				return writeJSON(out, map[string]any{"stages": stages})
			case asMarkdown && kind == "":
				return fmt.Errorf("a page is about the stages of one kind: name it, as in %s --markdown sample", c.CommandPath())
			case asMarkdown:
				return schema.Markdown(out, sdk.Kind(kind), stages)
			case named:
				return schema.Text(out, stages[0])
			}
			return schema.List(out, stages)
		},
	}
	flags.registerPlugins(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print descriptions as JSON")
	c.Flags().BoolVar(&asMarkdown, "markdown", false, "print a page of the reference")
	c.MarkFlagsMutuallyExclusive("json", "markdown")
	return c
}

// explain returns one stage, those of a kind or, without one, all.
func explain(known *engine.Catalog, kind sdk.Kind, use string) ([]schema.Stage, error) {
	if use != "" {
		stage, ok := known.Stage(kind, use)
		if ok {
			return []schema.Stage{schema.Of(use, stage)}, nil
		}
		if err := known.Explain(use); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("no plugin offers the %s stage %q.%s", kind, use, pipeline.OrList(use, known.Uses(kind)))
	}
	all := []schema.Stage{}
	for _, k := range kinds {
		if kind != "" && k != kind {
			continue
		}
		for _, use := range known.Uses(k) {
			if stage, ok := known.Stage(k, use); ok {
				all = append(all, schema.Of(use, stage))
			}
		}
	}
	return all, nil
}

func texts[T ~string](all []T) []string {
	var out []string
	for _, x := range all {
		out = append(out, string(x))
	}
	return out
}
