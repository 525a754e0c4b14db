package engine

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/host"
	"github.com/racflow/racflow/engine/knowledge/attached"
	"github.com/racflow/racflow/engine/knowledge/units"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

// DiagnosticsError says what is wrong with a file, and where. With the sources,
// hcl.NewDiagnosticTextWriter prints the lines.
type DiagnosticsError struct {
	Diagnostics hcl.Diagnostics
	Sources     map[string]*hcl.File // by name
}

// Error has a line for each diagnostic: FILE:LINE:COLUMN: summary: detail.
func (e *DiagnosticsError) Error() string {
	var lines []string
	for _, d := range e.Diagnostics {
		line := d.Summary
		if d.Detail != "" {
			line += ": " + d.Detail
		}
		if at := d.Subject; at != nil {
			line = fmt.Sprintf("%s:%d:%d: %s", at.Filename, at.Start.Line, at.Start.Column, line)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// explain turns errors for which a place in the file is to blame into a
// DiagnosticsError that points at it.
func (p *Pipeline) explain(err error) error {
	var source *units.SourceError
	var config *host.ConfigError
	var collection *attached.UnusableError
	var diags hcl.Diagnostics
	switch {
	case errors.As(err, &source):
		diags = diags.Append(&hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Unusable source", Detail: capitalize(source.Err.Error()) + ".", Subject: &source.Range,
		})
	case errors.As(err, &collection):
		diags = diags.Append(&hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Unusable collection", Detail: capitalize(err.Error()) + ".", Subject: &collection.Range,
		})
	case errors.As(err, &config):
		diags = p.blame(config)
	}
	if len(diags) == 0 {
		return p.workspace.unwritable(err)
	}
	return &DiagnosticsError{diags, p.file.Sources}
}

// unwritable adds what to do to an error of a state folder that cannot be written. It may come
// from another process, so that its text is all there is.
func (w *Workspace) unwritable(err error) error {
	if err == nil || !strings.Contains(err.Error(), w.state) {
		return err
	}
	for _, why := range []error{syscall.EACCES, syscall.EROFS} {
		if strings.Contains(err.Error(), why.Error()) {
			return fmt.Errorf("%w; this is not in the state folder yet, which cannot be written: name another with Options.State", err)
		}
	}
	return err
}

// blame makes diagnostics of the arguments that a stage refused. A mistake of
// the stage as a whole stays an error.
func (p *Pipeline) blame(refused *host.ConfigError) hcl.Diagnostics {
	blocks := map[*pipeline.Stage]string{}
	for _, k := range p.file.Knowledge {
		for _, stage := range k.Stages() {
			if blocks[stage] = k.Name; stage.Kind == sdk.KindEnrich {
				blocks[stage] = stage.Name
			}
		}
	}
	if p.chosen != nil {
		for _, stage := range p.chosen.Stages {
			blocks[stage] = stage.Name
			for _, f := range stage.Fallbacks {
				blocks[f.Stage] = stage.Name
			}
		}
	}
	var diags hcl.Diagnostics
	for stage, block := range blocks {
		for _, e := range refused.Errors {
			if _, given := stage.Config.Ranges[e.Argument]; given && block == refused.Block && stage.Kind == refused.Kind {
				diags = diags.Append(stage.Config.Diagnostic(stage.Use, stage.UseRange, e))
			}
		}
	}
	return diags
}

func capitalize(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
