package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/catalog"
	"github.com/racflow/racflow/engine/schema"
	"github.com/racflow/racflow/sdk"
)

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

Of third parties' plugins these are the ones that are being developed. One that was
never asked before is started to describe itself when its stage is named; a list
has those only that have been asked. What a file requires, racflow plugin describe
explains.`,
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
				if !slices.Contains(catalog.Kinds, sdk.Kind(kind)) {
					return fmt.Errorf("there is no kind %q; there are %s", kind, strings.Trim(strings.ReplaceAll(fmt.Sprint(catalog.Kinds), " ", ", "), "[]"))
				}
			}
			stages, err := a.Catalog().Describe(sdk.Kind(kind), use)
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
