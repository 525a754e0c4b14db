package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/internal/plugin/catalog"
	"github.com/racflow/racflow/engine/internal/show/report"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/sdk"
)

const planLong = `It shows the variables, what of the knowledge is out of date, which stage works on how many items, what calls of
language models would come to, one of the prompts, and what each third party's plugin may touch. No service is
asked: up to 500 items of the input go through the other stages.

Expected counts each item once, by the model's profile and by what earlier runs and racflow model probe saw of its
answers; of a model that thinks it is a range. At most is what calls cannot exceed: a token for each byte, a request
for each answer, all resamples; where nobody knows a bound, it says why. Answers in the response cache cost nothing.
Chunks stand in for entries of knowledge that a service has yet to enrich or to embed.

Prices are those of the file, else of the user's table (RACFLOW_PRICES, or prices.tsv in the folder racflow of the
user's configuration), else of a dated table that comes with racflow. The user's has columns that tabs separate, in
money for a million tokens; a model * is every other model of a host:

    host	model	input	cached	output	batch
    llm.example.com:8443	*	0		0

--calls N or --budget MONEY shows what that comes to, beside half and twice as much, nothing, and no limit: how many
items are sent, and how many wrong answers are among them.`

func newPlan() *cobra.Command {
	var flags fileFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "plan [FILE]",
		Short: "Show what a run would build and call, and what that would cost",
		Long:  planLong,
		Example: `  racflow plan pipelines/intent.hcl
  racflow plan -var model=gpt-4o-mini pipelines/intent.hcl
  racflow plan -var model=gpt-4o-mini --budget 5 --json pipelines/intent.hcl`,
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			return flags.pipelineOf(c, args[0], nil, func(a *app, p *workspace.Pipeline) error {
				plan, err := p.Plan(c.Context())
				if err != nil {
					return err
				}
				write := report.Plan
				if asJSON {
					write = report.PlanJSON
				}
				var text strings.Builder
				if err := write(&text, plan); err != nil {
					return err
				}
				_, err = io.WriteString(c.OutOrStdout(), a.Shown(text.String()))
				return err
			})
		},
	}
	flags.register(c)
	flags.registerInput(c)
	flags.registerPart(c)
	flags.registerSpend(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print the numbers as a JSON object")
	return c
}

const stagesLong = `List the stages that a pipeline file can use, those of one kind, or explain one:

    racflow stages
    racflow stages sample
    racflow stages sample/openai
    racflow stages rerank/mine/best     # of the plugin "mine"

Of third parties' plugins these are the ones that are being developed. One that was
never asked before is started to describe itself when its stage is named; a list
has those only that have been asked. What a file requires, racflow plugin describe
explains.`

func newStages() *cobra.Command {
	flags := fileFlags{state: stateDir}
	var asJSON, asMarkdown bool
	c := &cobra.Command{
		Use:   "stages [KIND[/NAME]]",
		Short: "List stages, or explain one: its arguments, bounds, defaults, and an example",
		Long:  stagesLong,
		Example: `  racflow stages
  racflow stages sample
  racflow stages sample/openai`,
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
				return catalog.KindMarkdown(out, sdk.Kind(kind), stages)
			case named:
				return catalog.StageText(out, stages[0])
			}
			return catalog.ListStages(out, stages)
		},
	}
	flags.registerPlugins(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print descriptions as JSON")
	c.Flags().BoolVar(&asMarkdown, "markdown", false, "print a page of the reference")
	c.MarkFlagsMutuallyExclusive("json", "markdown")
	return c
}
