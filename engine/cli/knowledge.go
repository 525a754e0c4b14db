package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/knowledge/generation"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/report"
)

func newKnowledge() *cobra.Command {
	c := &cobra.Command{
		Use:   "knowledge",
		Short: "List, refresh and remove what stands behind a file's knowledge",
		Long: `List and remove the generations of a file's knowledge, in whichever store it is
kept. Another embedder, analyzer or source builds another generation beside the
one before; changed rows do not. A collection that somebody else makes is only read:
it is listed, and racflow's sample of it can be read again.`,
	}
	c.AddCommand(newKnowledgeList(), newKnowledgeRefresh(), newKnowledgeCollect())
	return c
}

// histories calls do with what the stores hold of the file's knowledge: of what
// the pipeline searches that is chosen with --pipeline, or of every block.
func (f *fileFlags) histories(c *cobra.Command, path string, do func(*pipeline.Knowledge, *generation.History) error) error {
	return f.files(c, func(a *app) error { return a.Histories(c.Context(), path, do) })
}

func newKnowledgeList() *cobra.Command {
	var flags fileFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "list FILE",
		Short: "Say which generations there are, and which is current",
		Long: `Say which generations of the file's knowledge its stores hold. One is

  current     what a run of this file searches
  old         made from the same source, and replaced
  other       made from another source, or by a version that did not note which
  served      an edition that a process serves: what nobody changes, of one state of the source
  incomplete  its first build was cut off, or is under way
  attached    a collection that somebody else makes, read only

The embedder is started to find out which is current. Where that fails the others
are still listed.

Another binary of a third party's chunker, enricher or embedder makes another
generation, unless its stage says by a fingerprint of its own that it gives the
same. The list shows the versions, and with --json the sha256 of the binaries. Of a
script it is the script that counts, not its interpreter and what it imports.`,
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
