package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "racflow",
		Short: "Retrieval-augmented classification and retrieval pipelines",
		Long: `racflow runs pipelines that are written in HCL files: stages retrieve, write
prompts, vote and elect, each in a process of its own.

Start with: racflow run pipelines/intent.hcl`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(newRun(), newAsk(), newEval(), newTune(), newPlan(), newValidate(), newStages(), newFormat(), newLSP(), newConsole(), newGraph(), newModel(), newKnowledge(), newRuns(), newStore(), newCache(), newVersion())
	return root
}

// oneFile checks the arguments of a verb that works on a pipeline file.
func oneFile(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("name one pipeline file, such as: %s pipelines/intent.hcl", c.CommandPath())
	}
	return nil
}

// singleDash lets -var and -var-file be written with one dash, as in other
// tools that read HCL.
func singleDash(args []string) []string {
	out := make([]string, len(args))
	for i, arg := range args {
		name, _, _ := strings.Cut(arg, "=")
		if name == "-var" || name == "-var-file" {
			arg = "-" + arg
		}
		out[i] = arg
		if arg == "--" {
			copy(out[i:], args[i:])
			break
		}
	}
	return out
}
