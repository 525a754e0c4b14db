package main

import (
	"fmt"
	"math"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/cache"
	"github.com/racflow/racflow/engine/terminal"
)

func newCache() *cobra.Command {
	c := &cobra.Command{
		Use:   "cache",
		Short: "Show and clear the response cache",
		Long: `Show and clear the response cache. Each answer is kept under what was asked
(endpoint, model, messages, parameters, number of the sample), as soon as it
arrives. A run that asks for the same again gets it from here.`,
	}
	c.AddCommand(newCacheStats(), newCacheClear())
	return c
}

func newCacheStats() *cobra.Command {
	var state string
	var asJSON bool
	c := &cobra.Command{
		Use:   "stats",
		Short: "Say how many answers are kept, of which stages",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := cache.ReadStats(filepath.Join(state, engine.CacheFolder))
			if err != nil {
				return err
			}
			for _, err := range s.Damaged {
				fmt.Fprintln(c.ErrOrStderr(), err)
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), s)
			}
			tw := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(tw, "STAGE\tANSWERS\tSIZE\tNEWEST")
			for _, a := range s.About {
				fmt.Fprintf(tw, "%s\t%d\t%s\t%s\n", a.About, a.Entries, size(a.Bytes), a.Newest.Local().Format(time.DateTime))
			}
			fmt.Fprintf(tw, "all, in %s\t%d\t%s\t\n", terminal.Plural(s.Files, "file"), s.Entries, size(s.Bytes))
			return tw.Flush()
		},
	}
	c.Flags().StringVar(&state, "state", stateDir, "`DIR` that keeps answers between runs")
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return c
}

func newCacheClear() *cobra.Command {
	var state string
	var older time.Duration
	c := &cobra.Command{
		Use:   "clear",
		Short: "Remove kept answers",
		Long: `Remove kept answers: all, or those that are older than --older. What a running
process writes stays, and is reported.

Exit code 0: all that were to go are gone; 1: broke off; 3: some stayed.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if older < 0 {
				return fmt.Errorf("--older %s: an age is at least 0", older)
			}
			before := time.Now().Add(-older)
			if older == 0 {
				before = time.Unix(0, math.MaxInt64) // whatever a clock said
			}
			done, err := cache.Clear(filepath.Join(state, engine.CacheFolder), before)
			if err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "removed %s, %s\n", terminal.Plural(done.Records, "answer"), size(done.Bytes))
			if done.Busy > 0 {
				fmt.Fprintf(c.ErrOrStderr(), "left alone, because runs are writing there: %s\n", terminal.Plural(done.Busy, "file"))
				return &exitError{code: exitItemsFailed}
			}
			return nil
		},
	}
	c.Flags().StringVar(&state, "state", stateDir, "`DIR` that keeps answers between runs")
	c.Flags().DurationVar(&older, "older", 0, "only what is older than this, such as 720h")
	return c
}
