package cli

import (
	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/report"
)

func newPlan() *cobra.Command {
	var flags fileFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "plan FILE",
		Short: "Show what a run would build and call, and what that would cost",
		Long: `Show what a run would build and call: the variables, what of the knowledge is
out of date, which stage would work on how many items, and what the calls to
language models would come to, with one of the prompts. Of each language model it
shows what is known: its profile, which racflow model probe finds out.

Of a collection that somebody else makes it shows which of its fields is what and why, what it
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
accuracy that is reached at most.`,
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
