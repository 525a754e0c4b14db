package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/internal/file/bounded"
	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/output"
	"github.com/racflow/racflow/engine/internal/show/report"
	"github.com/racflow/racflow/engine/internal/source"
	texts "github.com/racflow/racflow/engine/internal/source/rows"
	"github.com/racflow/racflow/engine/internal/workspace"
)

const askLong = `The question goes through the pipeline, and the answer comes with the passages that it cites. A label comes with its
confidence and the labels that are likeliest after it, where the election estimates them. Without a
language model, the passages that were found are shown, the best first: short ones whole, of others the lines around the
sentence that matches the question best; --whole shows all of them.

- reads the question from standard input. --format json writes the result as run does.

Exit code 0: the question went through, answered or not; 1: it could not; 3: it failed, or a voter had to stop.`

// questioning holds the flags of racflow ask.
type questioning struct {
	flags    fileFlags
	format   string
	passages int
	whole    bool
}

func newAsk() *cobra.Command {
	var a questioning
	a.flags.more.Lists, a.flags.more.Likely = true, true // with the texts of the candidates, and the labels after the answer
	c := &cobra.Command{
		Use:   `ask [FILE] "QUESTION"`,
		Short: "Ask a pipeline one question",
		Long:  askLong,
		Example: `  racflow ask pipelines/contextual.hcl "How long does the gateway wait when it is shut down?"
  racflow ask -var docs=my/folder --passages 3 pipelines/contextual.hcl "how do I ..."
  racflow ask -var model=gpt-4o-mini pipelines/contextual.hcl "how do I ..."`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 1 && !strings.HasSuffix(args[0], ".hcl") {
				return takeFile(c)
			}
			if len(args) != 2 || strings.HasSuffix(args[1], ".hcl") && !strings.HasSuffix(args[0], ".hcl") {
				return errors.New(`name one pipeline file, and behind it put the question in quotes, such as: racflow ask pipelines/contextual.hcl "how long is a message kept?"`)
			}
			return nil
		},
		RunE: a.run,
	}
	c.Flags().StringVar(&a.format, "format", "", "write text or json: `FORMAT` (default text)")
	c.Flags().IntVar(&a.passages, "passages", 5, "show `N` passages where there is no answer")
	c.Flags().BoolVar(&a.whole, "whole", false, "show the whole text of passages")
	a.flags.register(c)
	a.flags.registerCalls(c)
	a.flags.registerTelemetry(c)
	return c
}

func (q *questioning) run(c *cobra.Command, args []string) error {
	switch {
	case q.format != "" && q.format != "text" && q.format != "json":
		return fmt.Errorf("unknown format %q: use text or json", q.format)
	case q.passages < 1:
		return fmt.Errorf("--passages: %d is no number of passages; it is at least 1", q.passages)
	}
	question, stdin, err := readQuestion(c.Context(), args[1], c.InOrStdin())
	if err != nil {
		return err
	}
	return q.flags.pipelineOf(c, args[0], stdin, func(a *app, p *workspace.Pipeline) error {
		r, err := p.AnswerRow(c.Context(), source.Row{Line: 1, ID: "question", Text: question})
		if err != nil {
			return err
		}
		if r.Failure != nil {
			a.print("the question failed: %v", r.Failure)
		}
		for _, skipped := range r.Skipped {
			a.print("it continued without %v", skipped)
		}
		for _, missing := range r.Missing {
			a.print("it was answered without %v", missing)
		}
		if err := q.write(c, a, p, r); err != nil {
			return fmt.Errorf("write the result: %w", err)
		}
		if text := missing(p); text != "" && r.Answer == "" && len(r.Candidates) > 0 {
			a.print("%s", text)
		}
		if r.Failure != nil || len(r.Missing) > 0 {
			return &exitError{code: exitItemsFailed}
		}
		return nil
	})
}

// write writes the result.
func (q *questioning) write(c *cobra.Command, a *app, p *workspace.Pipeline, r outcome.Result) error {
	a.progress.Clear()
	out := c.OutOrStdout()
	if q.format == "json" {
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		return enc.Encode(output.Of(p.Shown(r)))
	}
	return report.Ask(out, r, report.Asking{
		Width: int(terminalWidth(out)), Passages: q.passages, More: "--passages %d shows them",
		Whole: q.whole, Bold: obeysEscapes(out), Terms: p.Terms(r),
	})
}

// readQuestion returns the question, and the rest of standard input for the knowledge.
func readQuestion(ctx context.Context, given string, stdin io.Reader) (string, io.Reader, error) {
	if given == "-" {
		text, err := bounded.Interruptible(ctx, func() ([]byte, error) {
			return io.ReadAll(io.LimitReader(texts.UTF8(stdin), source.MaxRow+1))
		})
		if err != nil {
			return "", nil, fmt.Errorf("read the question: %w", err)
		}
		given, stdin = string(text), strings.NewReader("")
	}
	question := strings.TrimSpace(given)
	switch {
	case question == "":
		return "", nil, errors.New("the question is empty")
	case len(question) > source.MaxRow:
		return "", nil, fmt.Errorf("the question is longer than %d bytes", source.MaxRow)
	case !utf8.ValidString(question):
		return "", nil, errors.New("the question is not UTF-8")
	}
	return question, stdin, nil
}

// missing says what a language model would add and how to configure one; empty: a model answers.
func missing(p *workspace.Pipeline) string {
	searches := false
	for _, stage := range p.Definition().Stages {
		searches = searches || stage.Retrieve != nil
		if stage.Block == "sample" && stage.Info.Network && stage.Enabled {
			return ""
		}
	}
	switch {
	case !searches:
		return ""
	case slices.ContainsFunc(p.File().Variables, func(v pipeline.Variable) bool { return v.Name == "model" }):
		return "no language model answers: one would write an answer from these passages and cite them; add -var model=NAME"
	}
	return "no language model answers: one would write an answer from these passages and cite them, as pipelines/contextual.hcl has it"
}
