package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/internal/file/bounded"
	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/serve/lsp"
	"github.com/racflow/racflow/engine/internal/terminal"
	"github.com/racflow/racflow/engine/internal/workspace"
)

// takeFile is for a verb without arguments: it makes the pipeline file of the working directory the
// first argument, and prints its name on standard error.
func takeFile(c *cobra.Command) error {
	path, err := usualFile()
	if err != nil {
		return fmt.Errorf("%w, such as: %s pipelines/intent.hcl", err, c.CommandPath())
	}
	if !isSet(c, "quiet") {
		fmt.Fprintf(c.ErrOrStderr(), "using %s\n", path)
	}
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error { return run(c, slices.Concat([]string{path}, args)) }
	return nil
}

// usualFile finds the pipeline file of the working directory: pipeline.hcl, or else the only file
// with a pipeline block.
func usualFile() (string, error) {
	entries, err := os.ReadDir(".")
	if err != nil {
		return "", err
	}
	var found []string
	for _, e := range entries {
		switch name := e.Name(); {
		case name == "pipeline.hcl":
			return name, nil
		case filepath.Ext(name) == ".hcl" && !strings.HasPrefix(name, ".") && e.Type() != fs.ModeNamedPipe && hasPipeline(name):
			found = append(found, name)
		}
	}
	switch len(found) {
	case 0:
		return "", errors.New("there is no pipeline.hcl in this folder, nor another file with a pipeline: name one pipeline file")
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("there is no pipeline.hcl in this folder, and %s have pipelines: name one pipeline file", strings.Join(found, " and "))
}

func hasPipeline(path string) bool {
	src, err := bounded.ReadAny(path, bounded.MaxSource)
	if err != nil {
		return false
	}
	file, _ := bounded.Parse(src, path) // loading the file reports its errors
	body, ok := file.Body.(*hclsyntax.Body)
	return ok && slices.ContainsFunc(body.Blocks, func(b *hclsyntax.Block) bool { return b.Type == "pipeline" })
}

const formatLong = `Format pipeline files, in place. The names of the files that
changed are printed. - reads standard input and writes standard output.`

func newFormat() *cobra.Command {
	var check bool
	c := &cobra.Command{
		Use:   "fmt FILE...",
		Short: "Format pipeline files",
		Long:  formatLong,
		Example: `  racflow fmt pipeline.hcl
  racflow fmt --check pipelines/*.hcl
  racflow fmt - < pipeline.hcl`,
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
		return false, &workspace.DiagnosticsError{Diagnostics: diags, Sources: map[string]*hcl.File{path: file}}
	}
	after := bounded.Format(before)
	differs := !bytes.Equal(before, after)
	switch {
	case path == "-" && !check:
		_, err = terminal.Data(c.OutOrStdout()).Write(after)
	case differs:
		fmt.Fprintln(c.OutOrStdout(), path)
		if !check {
			err = replaceFile(path, after)
		}
	}
	return differs, err
}

// replaceFile writes a file completely, or leaves it unchanged.
func replaceFile(path string, content []byte) error {
	f, err := disk.OpenOutput(path, nil)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Commit()
	}
	return errors.Join(err, f.Close())
}

const lSPLong = `Serve an editor over the Language Server Protocol, on standard input and output;
editors start this command themselves. examples/editor/README.md says how to set
them up.

Files are checked as validate does while they are edited. No program is started: a
plugin that is locked brought its description, and one that is being developed is
known when validate or another verb has asked it.`

func newLSP() *cobra.Command {
	var flags fileFlags
	c := &cobra.Command{
		Use:     "lsp",
		Short:   "Serve editors: diagnostics, completion, hover, definitions and formatting",
		Long:    lSPLong,
		Example: `  racflow lsp`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return flags.files(c, func(a *app) error {
				options, err := a.LoadOptions()
				if err != nil {
					return err
				}
				options.Blind = true
				log, err := newLog(c)
				if err != nil {
					return err
				}
				return lsp.Serve(c.Context(), c.InOrStdin(), stdout{os.Stdout}, lsp.Options{Load: options, Version: workspace.Version(), Log: log})
			})
		},
	}
	flags.register(c)
	return c
}

// stdout is standard output as an io.WriteCloser that stays open.
type stdout struct{ io.Writer }

// Close implements io.Closer.
func (stdout) Close() error { return nil }

const validateLong = `Check a pipeline file: syntax, names, types, rules and the arguments of every
stage. All errors are reported at once, with file, line, column and advice. No
stage is run, no model is loaded, and racflow uses no network.

The programs of plugins are checked, too: their hashes, and that nobody else could
change them. None that is locked is started to describe itself. One that is being
developed (--plugins, RACFLOW_PLUGINS, or racflow plugin install --dev) is, once:
its answer is kept in --state until the program changes.`

func newValidate() *cobra.Command {
	var flags fileFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "validate [FILE]",
		Short: "Check a pipeline file without running it",
		Long:  validateLong,
		Example: `  racflow validate pipelines/intent.hcl
  racflow validate -var store=milvus pipelines/intent.hcl
  racflow validate --json pipeline.hcl`,
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			return flags.files(c, func(a *app) error {
				file, diags, err := a.Read(args[0])
				switch {
				case err != nil:
					return err
				case asJSON:
					err = writeJSON(c.OutOrStdout(), validation(file, diags))
				case len(diags) > 0:
					writeDiagnostics(c.ErrOrStderr(), &workspace.DiagnosticsError{Diagnostics: diags, Sources: file.Sources})
				}
				switch {
				case err == nil && diags.HasErrors():
					return &exitError{code: exitFailed}
				case !asJSON:
					fmt.Fprintf(c.OutOrStdout(), "%s is valid\n", args[0])
				}
				return err
			})
		},
	}
	flags.register(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print the outcome as JSON")
	return c
}

type validationJSON struct {
	Valid       bool             `json:"valid"`
	Errors      int              `json:"error_count"`
	Warnings    int              `json:"warning_count"`
	Diagnostics []diagnosticJSON `json:"diagnostics"`
	Inputs      []inputJSON      `json:"inputs,omitempty"`
}

// inputJSON names the columns of a pipeline's own input.
type inputJSON struct {
	Pipeline string `json:"pipeline"`
	Text     string `json:"text"`
	Label    string `json:"label,omitempty"`
}

type diagnosticJSON struct {
	Severity string     `json:"severity"`
	Summary  string     `json:"summary"`
	Detail   string     `json:"detail,omitempty"`
	Range    *rangeJSON `json:"range,omitempty"`
}

type rangeJSON struct {
	Filename string  `json:"filename"`
	Start    posJSON `json:"start"`
	End      posJSON `json:"end"`
}

type posJSON struct {
	Line   int `json:"line"`
	Column int `json:"column"`
	Byte   int `json:"byte"`
}

func validation(file *pipeline.File, diags hcl.Diagnostics) validationJSON {
	v := validationJSON{Valid: !diags.HasErrors(), Diagnostics: []diagnosticJSON{}}
	for _, p := range file.Pipelines {
		if v.Valid && p.Input != nil {
			v.Inputs = append(v.Inputs, inputJSON{p.Name, p.Input.Text, p.Input.Label})
		}
	}
	for _, d := range diags {
		out := diagnosticJSON{Severity: "error", Summary: d.Summary, Detail: d.Detail}
		if d.Severity == hcl.DiagWarning {
			out.Severity = "warning"
			v.Warnings++
		} else {
			v.Errors++
		}
		if r := d.Subject; r != nil {
			out.Range = &rangeJSON{r.Filename, posJSON(r.Start), posJSON(r.End)}
		}
		v.Diagnostics = append(v.Diagnostics, out)
	}
	return v
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
