package main

import "github.com/spf13/cobra"

func newRoot() *cobra.Command {
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
log.`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(newInit(), newRun(), newAsk(), newServe(), newWorker(), newEval(), newTest(), newTune(), newDoctor(), newPlan(), newValidate(), newStages(), newPlugin(), newFormat(), newLSP(),
		newConsole(), newGraph(), newModel(), newKnowledge(), newRuns(), newExplain(), newReport(), newReview(), newExport(), newStore(), newCache(), newVersion())
	completions(root)
	return root
}
