package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/knowledge/generation"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/terminal"
)

// collector removes generations.
type collector struct {
	dry, all bool
	stayed   int // that were to go
}

func newKnowledgeCollect() *cobra.Command {
	var flags fileFlags
	var gc collector
	c := &cobra.Command{
		Use:   "gc FILE",
		Short: "Remove generations that were replaced",
		Long: `Remove the generations of the file's knowledge that were made from the same
source as the current one: with another embedder, another analyzer, another
choice of columns. With --all, those of other sources go too.

Nothing is removed unless the current generation is complete, and nothing that a
process serves. With a store on a server, end runs that still search an old
generation first: the rest of their items would fail. A store of files keeps a generation for who has it open.

Exit code 0: all that were to go are gone; 1: broke off; 3: some stayed, because
another process writes them or the current one is not complete.`,
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			err := flags.histories(c, args[0], func(block *pipeline.Knowledge, h *generation.History) error {
				return gc.collect(c.Context(), c, block, h)
			})
			if err == nil && gc.stayed > 0 {
				err = &exitError{code: exitItemsFailed}
			}
			return err
		},
	}
	flags.register(c)
	c.Flags().BoolVar(&gc.dry, "dry-run", false, "only say what would go")
	c.Flags().BoolVar(&gc.all, "all", false, "generations of other sources, too: only the current one stays")
	return c
}

func (gc *collector) collect(ctx context.Context, c *cobra.Command, block *pipeline.Knowledge, h *generation.History) error {
	if h.Doubt != nil {
		return fmt.Errorf("knowledge %q: nothing is removed, for it is not known which generation is current: %w", block.Name, h.Doubt)
	}
	if block.Attached() {
		fmt.Fprintf(c.ErrOrStderr(), "knowledge %q: collection %s is read only: racflow removes nothing of it\n", block.Name, block.Collection())
		return nil
	}
	superseded := h.Superseded(gc.all)
	if len(superseded) == 0 {
		fmt.Fprintf(c.ErrOrStderr(), "knowledge %q: nothing to remove\n", block.Name)
		return nil
	}
	if now := h.Current(); now == nil || now.State != generation.Current {
		gc.stayed += len(superseded)
		fmt.Fprintf(c.ErrOrStderr(), "knowledge %q: nothing is removed before the current generation is complete; a run builds it\n", block.Name)
		return nil
	}
	verb := "removed"
	if gc.dry {
		verb = "would remove"
	}
	for _, g := range superseded {
		if !gc.dry {
			if err := h.Remove(ctx, g); err != nil {
				if ctx.Err() != nil {
					return err
				}
				gc.stayed++
				fmt.Fprintf(c.ErrOrStderr(), "knowledge %q: %v\n", block.Name, err)
				continue
			}
		}
		if _, err := fmt.Fprintf(c.OutOrStdout(), "%s %s (%s, %s)\n", verb, g.Collection, g.State, terminal.Plural(g.Entries, "entry")); err != nil {
			return errors.Join(err, ctx.Err())
		}
	}
	return nil
}
