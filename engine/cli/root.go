package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/racflow/racflow/engine/rule"
)

func newRoot(more ...*cobra.Command) *cobra.Command {
	root := &cobra.Command{
		Use:   "racflow",
		Short: "Retrieval-augmented classification and retrieval pipelines",
		Long: `racflow runs pipelines that are written in HCL files: stages retrieve, write
prompts, vote and elect, each in a process of its own.

Start with racflow init and your own data, or with racflow init --example intent.

RACFLOW_LOG in the environment says what of the log is shown on standard error: debug,
info, warn (which is usual) or error. Behind a comma a stage may have a level of its
own, named by its block and label, or by its block alone, which is every stage of that
kind; the stages of a knowledge have its name:

    RACFLOW_LOG=info,sample.mine=debug,embed.intents=error racflow run pipeline.hcl

What plugins print to standard error is logged as info where it is no record of a
log.

Exit codes: 0: all of it was done; 1: it could not start, or broke off; 2: a word or flag of
the command line is unknown, and nothing was done; 3: it finished, and something failed, is
missing or needs a look; 4: what a file expects does not hold; 130: interrupted. Where
a command has more to say of them, its help does.`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(newInit(), newRun(), newAsk(), newServe(), newWorker(), newEval(), newTest(), newTune(), newDoctor(), newPlan(), newValidate(), newStages(), newPlugin(), newFormat(), newLSP(),
		newConsole(), newGraph(), newModel(), newKnowledge(), newRuns(), newExplain(), newReport(), newReview(), newExport(), newCache(), newVersion())
	root.AddCommand(more...)
	completions(root)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	root.SetFlagErrorFunc(unknownFlag)
	strict(root)
	return root
}

// strict has c and the commands below it refuse words that are no commands. Cobra prints the help of a
// group in their place, and succeeds.
func strict(c *cobra.Command) {
	switch {
	case c.HasSubCommands():
		c.Args, c.DisableFlagsInUseLine = commandWord, true
		c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	case c.Name() == "help":
		c.Args = func(c *cobra.Command, words []string) error {
			at := c.Root()
			for _, word := range words {
				i := slices.IndexFunc(at.Commands(), func(sub *cobra.Command) bool { return sub.Name() == word })
				if i < 0 && at.HasSubCommands() {
					return commandWord(at, []string{word})
				}
				if i >= 0 {
					at = at.Commands()[i]
				}
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		strict(sub)
	}
}

// commandWord refuses a word behind a group: cobra would have found the command of that name.
func commandWord(group *cobra.Command, words []string) error {
	if len(words) == 0 {
		return nil
	}
	var names []string
	for _, sub := range group.Commands() {
		names = append(names, sub.Name())
	}
	meant := rule.Nearest(words[0], names)
	if others := group.SuggestionsFor(words[0]); meant == "" && len(others) > 0 {
		meant = others[0] // that another word is known to stand for, or begins
	}
	return usageError(group, fmt.Errorf("unknown command %q for %q", words[0], group.CommandPath()), meant)
}

// unknownFlag adds the flag that was probably meant.
func unknownFlag(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	meant := rule.Nearest(cmp.Or(unknown.GetSpecifiedShortnames(), unknown.GetSpecifiedName()), names)
	if meant != "" {
		meant = "--" + meant
	}
	return usageError(c, err, meant)
}

func usageError(c *cobra.Command, err error, meant string) error {
	if meant == "" {
		return &exitError{exitUsage, fmt.Errorf("%w; %s --help lists what there is", err, c.CommandPath())}
	}
	return &exitError{exitUsage, fmt.Errorf("%w; did you mean %s?", err, meant)}
}
