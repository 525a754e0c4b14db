package cli

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/bounded"
	"github.com/racflow/racflow/engine/output"
)

func newFormat() *cobra.Command {
	var check bool
	c := &cobra.Command{
		Use:   "fmt FILE...",
		Short: "Format pipeline files",
		Long: `Format pipeline files, in place. The names of the files that
changed are printed. - reads standard input and writes standard output.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			changed := 0
			for _, path := range args {
				if err := c.Context().Err(); err != nil {
					return err
				}
				differs, err := formatFile(c, path, check)
				if err != nil {
					return err
				}
				if differs {
					changed++
				}
			}
			if check && changed > 0 {
				return &exitError{exitItemsFailed, fmt.Errorf("%d of %d files are not formatted; racflow fmt formats them", changed, len(args))}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&check, "check", false, "only report: exit code 3 where a file would change")
	return c
}

func formatFile(c *cobra.Command, path string, check bool) (bool, error) {
	before, err := bounded.Read(c.Context(), path, c.InOrStdin())
	if err != nil {
		return false, err
	}
	if file, diags := bounded.Parse(before, path); diags.HasErrors() {
		return false, &engine.DiagnosticsError{Diagnostics: diags, Sources: map[string]*hcl.File{path: file}}
	}
	after := bounded.Format(before)
	differs := !bytes.Equal(before, after)
	switch {
	case path == "-" && !check:
		_, err = c.OutOrStdout().Write(after)
	case differs:
		fmt.Fprintln(c.OutOrStdout(), path)
		if !check {
			err = replaceFile(path, after)
		}
	}
	return differs, err
}

// replaceFile writes a file whole, or leaves it as it is.
func replaceFile(path string, content []byte) error {
	f, err := output.Open(path, nil)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Commit()
	}
	return errors.Join(err, f.Close())
}
