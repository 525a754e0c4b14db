package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/plugins/store/local"
)

func newStore() *cobra.Command {
	c := &cobra.Command{
		Use:   "store",
		Short: "Manage the files of the embedded store",
		Long: `Manage the files of the embedded store. FOLDER is a collection or holds
some, at any depth; without it that is the state folder, .racflow.`,
	}
	c.AddCommand(newStoreStats(), newStoreCheck(), newStoreCompact(), newStoreExport())
	return c
}

// eachCollection calls do with the collections in and below the folders that
// are named. One that fails does not keep it from the others; one that was begun
// and never committed is skipped.
func eachCollection(c *cobra.Command, folders []string, do func(local.Location) error) error {
	if len(folders) == 0 {
		folders = []string{stateDir}
	}
	var all []local.Location
	for _, folder := range folders {
		found, err := local.Find(folder)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("there is no folder %s: name the one of a store", folder)
		case err != nil:
			return err
		case len(found) == 0:
			return fmt.Errorf("%s holds no collection: name the folder of a store", folder)
		}
		all = append(all, found...)
	}
	var errs []error
	for _, at := range all {
		err := do(at)
		if errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(c.ErrOrStderr(), "%s is skipped: nothing was committed to it yet\n", at)
		} else if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", at, err))
		}
	}
	return errors.Join(errs...)
}

func newStoreStats() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "stats [FOLDER ...]",
		Short: "Say what the collections are made of",
		RunE: func(c *cobra.Command, folders []string) error {
			if asJSON {
				enc := json.NewEncoder(c.OutOrStdout())
				return eachCollection(c, folders, func(at local.Location) error {
					s, err := local.Stats(at)
					if err != nil {
						return err
					}
					return enc.Encode(struct {
						Collection string `json:"collection"`
						local.Statistics
					}{at.String(), s})
				})
			}
			tw := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(tw, "COLLECTION\tENTRIES\tREMOVED\tLABELS\tDIMENSION\tANALYZER\tWORDS\tFILES\tSIZE")
			err := eachCollection(c, folders, func(at local.Location) error {
				s, err := local.Stats(at)
				if err == nil {
					fmt.Fprintf(tw, "%s\t%d\t%d\t%d\t%d\t%s\t%d\t%d\t%s\n",
						at, s.Entries, s.Removed, s.Labels, s.Dimension, s.Analyzer, s.Words, s.Segments, size(s.Bytes))
				}
				return err
			})
			return errors.Join(tw.Flush(), err)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "a JSON object for each collection")
	return c
}

func newStoreCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check [FOLDER ...]",
		Short: "Read collections whole and report what is damaged",
		RunE: func(c *cobra.Command, folders []string) error {
			return eachCollection(c, folders, func(at local.Location) error {
				err := local.Check(c.Context(), at)
				if err == nil {
					fmt.Fprintf(c.OutOrStdout(), "%s is whole\n", at)
				}
				return err
			})
		},
	}
}

func newStoreCompact() *cobra.Command {
	return &cobra.Command{
		Use:   "compact [FOLDER ...]",
		Short: "Rewrite collections without what was deleted and replaced",
		Long: `Rewrite collections without what was deleted and replaced. This happens by
itself where it pays; compacting makes a collection as small as it can be. It
needs room for a copy meanwhile.`,
		RunE: func(c *cobra.Command, folders []string) error {
			return eachCollection(c, folders, func(at local.Location) error {
				done, err := local.Compact(c.Context(), at)
				if err == nil {
					fmt.Fprintf(c.OutOrStdout(), "%s: %s, was %s\n", at, size(done.After), size(done.Before))
				}
				return err
			})
		},
	}
}

// size shows bytes in a unit that suits them.
func size(n int64) string {
	if n < 1e6 {
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}
