package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/interrupt"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/rule"
	"github.com/racflow/racflow/engine/terminal"
	"github.com/racflow/racflow/sdk"
)

func newConsole() *cobra.Command {
	var flags fileFlags
	c := &cobra.Command{
		Use:   "console FILE",
		Short: "Evaluate expressions and rules with the values of a pipeline file",
		Long: `Evaluate expressions and rules with the values of a pipeline file. Each line of
standard input is one of

    EXPRESSION     such as var.model, local.x, upper("a"): what a file may write
    :item TEXT     the item that rules see from now on: a text, or as JSON, such as
                   {"text": "...", "meta": {}, "candidates": [{"label": "a", "score": 0.9}],
                   "votes": [{"voter": "knn", "answer": "a"}], "margin": 0.2, "answer": "a"}
    :row N         the item is the Nth row of the pipeline's input
    :rule RULE     such as :rule margin < var.margin_below; it sees the names of accept

No stage is started, so what stages would find is what :item says. Secrets show as
(secret). Where the input is no terminal, the exit code is 1 if a line failed.`,
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			return flags.files(c, func(a *app) error {
				file, err := a.Load(args[0])
				if err != nil {
					return err
				}
				return (&console{app: a, ctx: c.Context(), file: file, env: &rule.Env{}, in: c.InOrStdin(), out: c.OutOrStdout(), errs: c.ErrOrStderr()}).run()
			})
		},
	}
	flags.register(c)
	return c
}

// maxLine is how many bytes a line may have.
const maxLine = 1 << 20

// console evaluates lines.
type console struct {
	*app
	ctx       context.Context // of the command
	file      *pipeline.File
	env       *rule.Env
	in        io.Reader
	out, errs io.Writer
}

func (c *console) run() error {
	lines, failed := bufio.NewScanner(c.in), false
	lines.Buffer(nil, maxLine)
	for {
		if isTerminal(c.in) {
			fmt.Fprint(c.out, "> ")
		}
		more, err := interrupt.Do(c.ctx, func() (bool, error) { return lines.Scan(), nil })
		if err != nil {
			return err
		}
		if !more {
			break
		}
		line := strings.TrimSpace(lines.Text())
		if line == "" {
			continue
		}
		value, diags, err := c.evaluate(line)
		if c.ctx.Err() != nil {
			return c.ctx.Err()
		}
		switch {
		case diags.HasErrors():
			writeDiagnostics(c.errs, &engine.DiagnosticsError{Diagnostics: diags, Sources: c.file.Sources})
		case err != nil:
			fmt.Fprintln(c.errs, terminal.Sanitize(err.Error()))
		case value != "":
			fmt.Fprintln(c.out, value) // HCL escapes what a terminal would obey
		}
		failed = failed || err != nil || diags.HasErrors()
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read a line: %w", err)
	}
	if failed && !isTerminal(c.in) {
		return &exitError{code: exitFailed}
	}
	return nil
}

func (c *console) evaluate(line string) (value string, diags hcl.Diagnostics, err error) {
	command, rest, _ := strings.Cut(line, " ")
	switch {
	case command == ":item":
		c.env, err = itemOf(strings.TrimSpace(rest))
		return "", nil, err
	case command == ":row":
		return "", nil, c.row(strings.TrimSpace(rest))
	case command == ":rule":
		r, diags := c.file.CompileRule(c.ctx, rule.Accept, rest)
		if diags.HasErrors() {
			return "", diags, nil
		}
		holds, err := r.Eval(c.ctx, c.env)
		return strconv.FormatBool(holds), nil, err
	case strings.HasPrefix(command, ":"):
		return "", nil, fmt.Errorf("there is no %s; there are :item, :row and :rule", command)
	}
	value, diags = c.file.Evaluate(c.ctx, line)
	return value, diags, nil
}

// row makes a row of the input the item.
func (c *console) row(number string) error {
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 {
		return fmt.Errorf("write the number of a row, such as :row 1, not %q", number)
	}
	p, err := c.Choose(c.file)
	if err != nil {
		return err
	}
	if p.Input == nil || p.Input.Path == "-" {
		return errors.New("the pipeline names no file as its input; write :item TEXT")
	}
	rows, err := p.Input.Open(nil)
	if err != nil {
		return err
	}
	defer rows.Close()
	for i := 1; ; i++ {
		row, err := rows.Next()
		switch {
		case errors.Is(err, io.EOF):
			return fmt.Errorf("the input has %d rows", i-1)
		case err != nil:
			return err
		case i < n:
		case row.Err != nil:
			return row.Err
		default:
			c.env = &rule.Env{Item: sdk.Item{ID: row.ID, Text: row.Text, Meta: row.Meta}}
			return nil
		}
	}
}

// itemOf is what rules see of an item that somebody typed.
func itemOf(text string) (*rule.Env, error) {
	if !strings.HasPrefix(text, "{") {
		return &rule.Env{Item: sdk.Item{Text: text}}, nil
	}
	var given struct {
		sdk.Item
		Labels            []string
		Votes             []rule.Vote
		Margin, Agreement float64
		Confidence        *float64 // nil: as the agreement
		Answer            string
	}
	var scores struct {
		Candidates []struct{ Dense, Lexical *float32 }
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := errors.Join(dec.Decode(&given), json.Unmarshal([]byte(text), &scores)); err != nil {
		return nil, fmt.Errorf("read the item: %w", err)
	}
	for i, s := range scores.Candidates { // what is not given was not scored
		if s.Dense == nil {
			given.Candidates[i].Dense = sdk.Unscored
		}
		if s.Lexical == nil {
			given.Candidates[i].Lexical = sdk.Unscored
		}
	}
	env := &rule.Env{Item: given.Item, Votes: given.Votes, Margin: given.Margin, Agreement: given.Agreement, Answer: given.Answer}
	env.Confidence = env.Agreement
	if given.Confidence != nil {
		env.Confidence = *given.Confidence
	}
	for _, candidate := range given.Candidates {
		env.CandidateLabels = append(env.CandidateLabels, candidate.Label)
	}
	env.Labels = rule.NewLabelSet(append(given.Labels, env.CandidateLabels...))
	env.CandidateLabels = rule.NewLabelSet(env.CandidateLabels).Sorted()
	return env, nil
}
