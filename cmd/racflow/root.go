package main

import "github.com/spf13/cobra"

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "racflow",
		Short: "Retrieval-augmented classification and retrieval pipelines",
		Long: `racflow runs pipelines that are written in HCL files: stages retrieve, write
prompts, vote and elect, each in a process of its own.

Start with racflow init and your own data, or with racflow init --example intent.`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(newInit(), newRun(), newAsk(), newEval(), newTune(), newDoctor(), newPlan(), newValidate(), newStages(), newFormat(), newLSP(),
		newConsole(), newGraph(), newModel(), newKnowledge(), newRuns(), newExport(), newStore(), newCache(), newVersion())
	return root
}
