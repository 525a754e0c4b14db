package cli

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/plugin/create"
	"github.com/racflow/racflow/engine/terminal"
	"github.com/racflow/racflow/sdk"
)

func newPluginNew() *cobra.Command {
	var o create.Options
	c := &cobra.Command{
		Use:   "new KIND NAME",
		Short: "Write the project of a new plugin",
		Long: `Write the project of a new plugin into the folder NAME: a small stage that works, a
test, data, a pipeline file that uses the stage as NAME/NAME, and a workflow that
releases the plugin. KIND is what the stage does:

  chunk    cuts documents into passages         rerank  orders what a search found
  enrich   adds to passages what finds them     prompt  writes what a model is asked
  embed    turns texts into vectors             sample  votes on an item
  store    keeps entries and searches them      elect   decides from all votes

A plugin in Go needs Go, and racflow's module, which the go command downloads. A
plugin in Python needs Python 3 and packages that pip downloads.`,
		Example: `  racflow plugin new rerank mine
  racflow plugin new sample mine --lang python`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("name the kind of the stage and the plugin, such as: racflow plugin new rerank mine; the kinds are %s", create.Kinds())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			o.Kind, o.Name = sdk.Kind(args[0]), args[1]
			if o.SDK == "" {
				o.SDK = engine.Version()
			}
			paths, err := create.Write(o.Name, o)
			if err != nil {
				return err
			}
			out := c.OutOrStdout()
			fmt.Fprintf(out, "The plugin %s is in the folder %s:\n\n", o.Name, o.Name)
			for _, path := range paths {
				fmt.Fprintf(out, "  %s\n", terminal.Line(filepath.Join(o.Name, path)))
			}
			fmt.Fprintf(out, "\nThe stage is written in %s. Next:\n\n", filepath.Join(o.Name, o.Main()))
			table := terminal.NewTable(out)
			fmt.Fprintf(table, "  cd %s\n", o.Name)
			fmt.Fprint(table, "  racflow plugin verify .\t# build it, and check what it owes the engine\n")
			fmt.Fprint(table, "  racflow plugin install . --dev\t# let your own racflow use it; again after each change\n")
			fmt.Fprint(table, "  racflow run pipeline.hcl\t# and use it\n")
			return table.Flush()
		},
	}
	c.Flags().StringVar(&o.Lang, "lang", create.Go, "write it in `LANGUAGE`: go or python")
	c.Flags().StringVar(&o.SDK, "sdk", "", "write it against a `VERSION` of racflow, or in Go against the folder of a checkout (default: the version of this racflow)")
	return c
}
