package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine"
)

func newValidate() *cobra.Command {
	var flags fileFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "validate FILE",
		Short: "Check a pipeline file without running it",
		Long: `Check a pipeline file: syntax, names, types, rules and the arguments of every
stage. All errors are reported at once, with file, line, column and advice. No
stage is run, no model is loaded, and racflow uses no network.

The programs of plugins are checked, too: their hashes, and that nobody else could
change them. None that is locked is started to describe itself. One that is being
developed (--plugins, RACFLOW_PLUGINS, or racflow plugin install --dev) is, once:
its answer is kept in --state until the program changes.`,
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			return flags.files(c, func(a *app) error {
				file, diags, err := a.Read(args[0])
				switch {
				case err != nil:
					return err
				case asJSON:
					err = writeJSON(c.OutOrStdout(), validation(diags))
				case len(diags) > 0:
					writeDiagnostics(c.ErrOrStderr(), &engine.DiagnosticsError{Diagnostics: diags, Sources: file.Sources})
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

func validation(diags hcl.Diagnostics) validationJSON {
	v := validationJSON{Valid: !diags.HasErrors(), Diagnostics: []diagnosticJSON{}}
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
