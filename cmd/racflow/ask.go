package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/interrupt"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/report"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/engine/source"
)

func newAsk() *cobra.Command {
	var flags fileFlags
	flags.more.Lists = true // with the texts of what was found
	var format string
	var passages int
	c := &cobra.Command{
		Use:   `ask FILE "QUESTION"`,
		Short: "Ask a pipeline one question",
		Long: `Take one question through a pipeline, and show the answer with the passages that
it cites. Without a language model, show the passages that were found, the best
first, each with its score, its place and some lines.

What the pipeline knows is brought up to date first: only what changed is embedded
again. - reads the question from standard input. With --format json, the result is
written as run writes it.

Exit code 0: the question went through, be it answered or not; 1: it could not;
3: it failed, a voter had to stop, or a document could not be used.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 || strings.HasSuffix(args[1], ".hcl") && !strings.HasSuffix(args[0], ".hcl") {
				return errors.New(`name one pipeline file, and behind it put the question in quotes, such as: racflow ask pipelines/contextual.hcl "how long is a message kept?"`)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case format != "" && format != "text" && format != "json":
				return fmt.Errorf("unknown format %q: use text or json", format)
			case passages < 1:
				return fmt.Errorf("--passages: %d is no number of passages; it is at least 1", passages)
			}
			question, stdin, err := readQuestion(c.Context(), args[1], c.InOrStdin())
			if err != nil {
				return err
			}
			return flags.pipelineOf(c, args[0], stdin, func(a *app, p *engine.Pipeline) error {
				r, err := p.AnswerRow(c.Context(), source.Row{Line: 1, ID: "question", Text: question})
				if err != nil {
					return err
				}
				out := c.OutOrStdout()
				if r.Failure != nil {
					a.print("the question failed: %v", r.Failure)
				}
				for _, skipped := range r.Skipped {
					a.print("it continued without %v", skipped)
				}
				for _, missing := range r.Missing {
					a.print("it was answered without %v", missing)
				}
				a.progress.Clear()
				if format == "json" {
					err = writeResult(out, r)
				} else {
					err = report.Ask(out, r, report.Asking{Width: int(terminalWidth(out)), Passages: passages, More: "--passages %d shows them"})
				}
				if err != nil {
					return fmt.Errorf("write the result: %w", err)
				}
				if text := missing(p); text != "" && r.Answer == "" && len(r.Candidates) > 0 {
					a.print("%s", text)
				}
				if r.Failure != nil || len(r.Missing) > 0 || p.Invalid() > 0 {
					return &exitError{code: exitItemsFailed}
				}
				return nil
			})
		},
	}
	flags.register(c)
	flags.registerCalls(c)
	c.Flags().StringVar(&format, "format", "", "text or json (default text)")
	c.Flags().IntVar(&passages, "passages", 5, "show `N` passages where there is no answer")
	return c
}

// readQuestion returns the question, and what is left of standard input for the
// knowledge.
func readQuestion(ctx context.Context, given string, stdin io.Reader) (string, io.Reader, error) {
	if given == "-" {
		text, err := interrupt.Do(ctx, func() ([]byte, error) {
			return io.ReadAll(io.LimitReader(stdin, source.MaxRow+1))
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

func writeResult(w io.Writer, r outcome.Result) error {
	results, err := result.NewWriter(result.JSONL, w, "")
	if err != nil {
		return err
	}
	return errors.Join(results.Write(r), results.Flush())
}

// missing says what a language model would add, and how to give one; nothing
// where one answers.
func missing(p *engine.Pipeline) string {
	definition := p.Definition()
	var off []string
	for _, k := range definition.Knowledge() {
		for _, stage := range k.Enrich {
			if !stage.Enabled && stage.Info.Network {
				off = append(off, stage.Block+"."+stage.Name)
			}
		}
	}
	text := "no language model answers: one would write an answer from these passages and cite them"
	if len(off) > 0 {
		text += "; they are searched without what " + strings.Join(off, " and ") + " would add"
	}
	voter, searches := "", false
	for _, stage := range definition.Stages {
		searches = searches || stage.Retrieve != nil
		if stage.Block == "sample" && stage.Info.Network {
			if stage.Enabled {
				return ""
			}
			voter = stage.Block + "." + stage.Name
		}
	}
	switch {
	case !searches:
		return ""
	case voter == "":
		text += "; an answer takes a prompt, a sample and an elect block, as pipelines/contextual.hcl has them"
	default:
		off = append(off, voter)
	}
	has := func(variable string) bool {
		return slices.ContainsFunc(p.File().Variables, func(v pipeline.Variable) bool { return v.Name == variable })
	}
	switch {
	case len(off) > 0 && has("model") && has("base_url"):
		text += "; add -var model=NAME (and -var base_url=URL for a server of your own)"
	case len(off) > 0 && has("model"):
		text += "; add -var model=NAME"
	case len(off) > 0:
		text += "; turn on " + strings.Join(off, " and ")
	}
	return text
}
