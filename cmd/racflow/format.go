package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/pipeline"
)

func newFormat() *cobra.Command {
	var check bool
	c := &cobra.Command{
		Use:   "fmt FILE...",
		Short: "Lay out pipeline files in the usual way",
		Long: `Lay out pipeline files in the usual way, in place. The names of the files that
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
				return &exitError{exitItemsFailed, fmt.Errorf("%d of %d files are not laid out in the usual way; racflow fmt mends them", changed, len(args))}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&check, "check", false, "only report: exit code 3 where a file would change")
	return c
}

func formatFile(c *cobra.Command, path string, check bool) (bool, error) {
	before, err := pipeline.Read(c.Context(), path, c.InOrStdin())
	if err != nil {
		return false, err
	}
	if file, diags := pipeline.Parse(before, path); diags.HasErrors() {
		writeDiagnostics(c.ErrOrStderr(), &pipeline.File{Sources: map[string]*hcl.File{path: file}}, diags)
		return false, &exitError{code: exitFailed}
	}
	after := pipeline.Format(before)
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

// replaceFile writes a file beside the old one first, so that a full disk
// leaves the old one as it is. A link stays one: the file it leads to is
// replaced.
func replaceFile(path string, content []byte) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	temp := path + ".tmp"
	if err := os.WriteFile(temp, content, info.Mode().Perm()); err != nil {
		_ = os.Remove(temp) // the first error is the one to tell
		return err
	}
	return os.Rename(temp, path)
}
