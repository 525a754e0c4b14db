package cli

import (
	"github.com/spf13/cobra"
)

func newKnowledgeRefresh() *cobra.Command {
	var flags fileFlags
	c := &cobra.Command{
		Use:   "refresh FILE",
		Short: "Read the samples of attached collections again",
		Long: `Read the samples again of collections that somebody else makes and the file attaches.

Labels and their centroids, random examples, and what voters learn come from the first
50,000 entries of such a collection, and at most 512 MB of their texts and vectors. They are
kept in the state folder, and read again by themselves where another collection
stands behind the name, or the number of entries has moved by more than a fifth. Where its
owner has changed rows in place, this command has them read again. Where the rows are others, 50 of
them are embedded again and compared with their vectors, too, which asks a service where the embedder is one.

What racflow builds itself, from sources, needs no such command: every run brings it up to date.`,
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			return flags.files(c, func(a *app) error { return a.Refresh(c.Context(), args[0]) })
		},
	}
	flags.register(c)
	return c
}
