package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/plugin/catalog"
	"github.com/racflow/racflow/engine/internal/show/report"
	"github.com/racflow/racflow/sdk"
)

const planLong = `Show what a run would build and call: the variables, what of the knowledge is
out of date, which stage would work on how many items, and what the calls to
language models would come to, with one of the prompts. Of each language model it
shows what is known: its profile, which racflow model probe finds out.

Of a collection that another program makes it shows which of its fields is what and why, what it
goes without, how many entries racflow has read as a sample, and the mean cosine of its
vectors with those of the embedder.

Of each third party's plugin it shows the program and its hash, on whose word it is
started, the folders, hosts and memory that it may use, and what of that this system
cannot enforce.

No service is asked. Up to 500 items of the input go through the other stages, for
which knowledge that is embedded on this machine is brought up to date.

What is expected counts each item once, by what is known of the model (racflow model
probe): the bytes of its tokens, what its chat template adds, how long it thinks. At most is
what calls cannot exceed: a token for each byte, a request for each answer, all
resamples. Only what was sent and got no reply, and answers that a model's thoughts
left no room for, come on top. Where nobody knows a bound, it says why: an answer has
no limit, it is not known whether the model thinks, a plugin does not say what a request
takes, or there are more items than were looked at. Answers in the response cache cost
nothing. --json gives the same numbers to programs.

Prices are those of the price block of a stage; else of the user's file of prices; else,
for well-known models at their own services, of a table that comes with racflow, whose
day is shown. The user's file is the one that RACFLOW_PRICES names, or prices.tsv in the
folder racflow of the user's configuration (~/.config on Linux): lines of columns that tabs
separate, the first of which names them. Prices are for a million tokens, and a model * is every other model
of a host:

    host	model	input	cached	output	batch
    api.openai.com	gpt-4o-mini	0.15	0.075	0.6	0.5
    llm.example.com:8443	*	0		0

A limit on money (max_cost, --max-cost, --budget) is refused where a stage that calls a
service has no price from anywhere.

--calls N or --budget MONEY shows what that comes to in a run, beside half and twice
as much, nothing, and no limit: how many items are sent and, where the election gives
a confidence, how many wrong answers are expected among them. Where the input has
labels, it is how many of the other voters' answers are wrong among them, and the
accuracy that is reached at most.`

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
			return flags.pipelineOf(c, args[0], nil, func(_ *app, p *engine.Pipeline) error {
				plan, err := p.Plan(c.Context())
				if err != nil {
					return err
				}
				if asJSON {
					return report.PlanJSON(c.OutOrStdout(), plan)
				}
				return report.Plan(c.OutOrStdout(), plan)
			})
		},
	}
	flags.register(c)
	flags.registerInput(c)
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
