package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge/generation"
	"github.com/racflow/racflow/engine/internal/show/report"
	"github.com/racflow/racflow/engine/internal/terminal"
)

const knowledgeLong = `List and remove the generations of a file's knowledge, in whichever store it is
kept. Another embedder, analyzer or source builds another generation beside the
one before; changed rows do not. A collection that another program makes is only read:
it is listed, and racflow's sample of it can be read again.`

func newKnowledge() *cobra.Command {
	c := &cobra.Command{
		Use:   "knowledge",
		Short: "List, refresh and remove the stored versions of a file's knowledge",
		Long:  knowledgeLong,
	}
	c.AddCommand(newKnowledgeList(), newKnowledgeRefresh(), newKnowledgeCollect())
	return c
}

// histories calls do with the stored versions of the file's knowledge: of the knowledge that the
// pipeline of --pipeline searches, or of every block.
func (f *fileFlags) histories(c *cobra.Command, path string, do func(*pipeline.Knowledge, *generation.History) error) error {
	return f.files(c, func(a *app) error { return a.Histories(c.Context(), path, do) })
}

const knowledgeListLong = `A generation is one of

  current     what a run of this file searches
  old         made from the same source, and replaced
  other       made from another source, or by a version that did not note which
  served      of one state of the source, unchanged while a process serves it
  incomplete  its first build was cut off, or is under way
  attached    a collection that another program makes, read only

The embedder is started to find out which is current; where that fails, the others are still listed. Another
program of a plugin makes another generation, unless its stage says by a fingerprint that the results are the same.`

func newKnowledgeList() *cobra.Command {
	var flags fileFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "list FILE",
		Short: "Say which generations there are, and which is current",
		Long:  knowledgeListLong,
		Example: `  racflow knowledge list pipelines/intent.hcl
  racflow knowledge list --json pipelines/intent.hcl
  racflow knowledge list -var store=milvus pipelines/intent.hcl`,
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			list := report.NewGenerations(c.OutOrStdout())
			err := flags.histories(c, args[0], func(block *pipeline.Knowledge, h *generation.History) error {
				list.Add(block.Name, block.Store.Use, h)
				switch now := h.Current(); {
				case h.Doubt != nil:
					fmt.Fprintf(c.ErrOrStderr(), "knowledge %q: it is not known which generation is current: %v\n", block.Name, h.Doubt)
				case now == nil:
					fmt.Fprintf(c.ErrOrStderr(), "knowledge %q: the current generation is not there yet; a run builds it\n", block.Name)
				case now.State == generation.Incomplete:
					fmt.Fprintf(c.ErrOrStderr(), "knowledge %q: the current generation %s is incomplete; a run resumes it\n", block.Name, now.Collection)
				}
				return nil
			})
			if err != nil {
				return err
			}
			if asJSON {
				return list.JSON()
			}
			return list.Table()
		},
	}
	flags.register(c)
	c.Flags().BoolVar(&asJSON, "json", false, "a JSON object for each generation")
	return c
}

// collector removes index versions.
type collector struct {
	dry, all bool
	stayed   int // not removed, although they should be
}

const knowledgeCollectLong = `These are the generations that were made from the same source as the current one, by another embedder, analyzer or
choice of columns; with --all, those of other sources, too. Nothing goes unless the current generation is
complete, and nothing that a process serves. On a server's store, end runs that still search an old one first.

Exit code 0: all that were to go are gone; 1: broke off; 3: some stayed.`

func newKnowledgeCollect() *cobra.Command {
	var flags fileFlags
	var gc collector
	c := &cobra.Command{
		Use:   "gc FILE",
		Short: "Remove generations that were replaced",
		Long:  knowledgeCollectLong,
		Example: `  racflow knowledge gc pipelines/intent.hcl
  racflow knowledge gc --dry-run pipelines/intent.hcl
  racflow knowledge gc -var store=milvus pipelines/intent.hcl`,
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

const knowledgeRefreshLong = `Of a collection that another program makes, racflow keeps a sample in the state folder: the first 50,000 entries, at
most 512 MB. Labels, centroids, random examples and what voters learn come from it. It is read again by itself
where another collection has the name, or the number of entries has moved by more than a fifth. After its owner has
changed rows in place, this command reads it again, and compares 50 of them with their vectors.`

func newKnowledgeRefresh() *cobra.Command {
	var flags fileFlags
	c := &cobra.Command{
		Use:     "refresh FILE",
		Short:   "Read the samples of attached collections again",
		Long:    knowledgeRefreshLong,
		Example: `  racflow knowledge refresh examples/milvus/attached.hcl`,
		Args:    oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			return flags.files(c, func(a *app) error { return a.Refresh(c.Context(), args[0]) })
		},
	}
	flags.register(c)
	return c
}
