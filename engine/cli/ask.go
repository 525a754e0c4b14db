package cli

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/file/bounded"
	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/file/rule"
	texts "github.com/racflow/racflow/engine/internal/knowledge/rows"
	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/result"
	"github.com/racflow/racflow/engine/internal/show/report"
	"github.com/racflow/racflow/engine/internal/show/terminal"
	"github.com/racflow/racflow/sdk"
)

const askLong = `The question goes through the pipeline, and the answer comes with the passages that it cites. Without a
language model, the passages that were found are shown, the best first, with those lines that match the
question best; --whole and --around 1 show more of them.

Where no model reads the passages, and minilm embeds them, a line says if it is likely that none of them answers
the question. It goes by how near they are and by shared words, so it catches questions about something else
altogether.

- reads the question from standard input. --format json writes the result as run does, and whether an answer
is unlikely.

Exit code 0: the question went through, answered or not; 1: it could not; 3: it failed, or a voter had to stop.`

// questioning is racflow ask.
type questioning struct {
	flags            fileFlags
	format           string
	passages, around int
	whole            bool
}

func newAsk() *cobra.Command {
	var a questioning
	a.flags.more.Lists = true // with the texts of what was found
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
	c.Flags().IntVar(&a.around, "around", 0, "show whole passages with `N` passages before and after each in its document")
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
	case q.around < 0:
		return fmt.Errorf("--around: %d is no number of passages; 0 shows none around", q.around)
	}
	question, stdin, err := readQuestion(c.Context(), args[1], c.InOrStdin())
	if err != nil {
		return err
	}
	return q.flags.pipelineOf(c, args[0], stdin, func(a *app, p *engine.Pipeline) error {
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

// write shows the result, with the passages around those that were found.
func (q *questioning) write(c *cobra.Command, a *app, p *engine.Pipeline, r outcome.Result) error {
	terms, judgement := p.Judge(r)
	if err := widen(c.Context(), p, &r, q.around, q.passages); err != nil {
		a.print("warning: %v", err)
	}
	a.progress.Clear()
	out := c.OutOrStdout()
	if q.format == "json" {
		return writeAsked(out, p, r, judgement)
	}
	return report.Ask(out, r, report.Asking{
		Width: int(terminalWidth(out)), Passages: q.passages, More: "--passages %d shows them",
		Whole: q.whole || q.around > 0, Bold: obeysEscapes(out), Terms: terms,
		Judgement: judgement,
	})
}

// readQuestion returns the question, and what is left of standard input for the
// knowledge.
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

// widen replaces the text of what is shown by that of more of its document.
func widen(ctx context.Context, p *engine.Pipeline, r *outcome.Result, around, passages int) error {
	if around == 0 {
		return nil
	}
	var failed error
	wide := func(c *sdk.Candidate) {
		more, err := p.Around(ctx, *c, around)
		if *c = more; err != nil {
			failed = err
		}
	}
	for i := range r.Citations {
		wide(&r.Citations[i].Passage)
	}
	r.Candidates = slices.Clone(r.Candidates)
	for i := range r.Candidates[:min(passages, len(r.Candidates))] {
		wide(&r.Candidates[i])
	}
	return failed
}

// asked is a result as run writes it, with what ask adds.
type asked struct {
	result.Result
	Unlikely bool `json:"unlikely"` // probably none of the candidates answers the question
	// Relevance is the probability that one of them does; absent where it is not known well.
	Relevance *float64 `json:"relevance,omitempty"`
}

func writeAsked(w io.Writer, p *engine.Pipeline, r outcome.Result, j eval.Judgement) error {
	one := asked{Result: result.Of(r, p.Definition().Cost), Unlikely: j.Unlikely}
	if !math.IsNaN(j.Probability) {
		one.Relevance = &j.Probability
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(one)
}

// missing says what a language model would add, and how to give one; nothing where one answers.
func missing(p *engine.Pipeline) string {
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

var consoleLong = `Evaluate expressions and rules with the values of a pipeline file. Each line of
standard input is one of

` + report.ConsoleCommands + `
Once there is an item, an EXPRESSION may also read what rules see of it: margin < 0.2
or answer in candidate_labels.

No stage of the pipeline answers anything, so what stages would find is what :item
says. Secrets show as (secret). Where the input is no terminal, the exit code is 1 if a line failed.`

func newConsole() *cobra.Command {
	var flags fileFlags
	c := &cobra.Command{
		Use:   "console [FILE]",
		Short: "Evaluate expressions and rules with the values of a pipeline file",
		Long:  consoleLong,
		Example: `  racflow console pipelines/intent.hcl
  echo 'var.embedder' | racflow console pipelines/intent.hcl`,
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("run") || c.Flags().Changed("item") {
				return errors.New("racflow explain RUN ID shows an item as a run recorded it; :item takes one, and :row reads one from the input")
			}
			return flags.files(c, func(a *app) error {
				file, err := a.Load(args[0])
				if err != nil {
					return err
				}
				console := &console{app: a, ctx: c.Context(), file: file, in: c.InOrStdin(), out: c.OutOrStdout(), errs: c.ErrOrStderr()}
				return console.run()
			})
		},
	}
	flags.register(c)
	for _, former := range []string{"run", "item"} { // they get the error that says what replaces them
		c.Flags().String(former, "", "")
		c.Flags().Lookup(former).Hidden = true
	}
	return c
}

// maxLine is how many bytes a line may have.
const maxLine = 1 << 20

// console evaluates lines.
type console struct {
	*app
	ctx       context.Context // of the command
	file      *pipeline.File
	item      *rule.Env // nil: none yet
	in        io.Reader
	out, errs io.Writer
}

func (c *console) run() error {
	lines, failed := bufio.NewScanner(texts.UTF8(c.in)), false
	lines.Buffer(nil, maxLine)
	for {
		if isTerminal(c.in) {
			fmt.Fprint(c.out, "> ")
		}
		more, err := bounded.Interruptible(c.ctx, func() (bool, error) { return lines.Scan(), nil })
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
	case command == ":help":
		return "", nil, report.ConsoleHelp(c.out, c.file, c.item != nil)
	case command == ":item":
		item, err := itemOf(strings.TrimSpace(rest))
		if err == nil {
			c.item = item
		}
		return "", nil, err
	case command == ":row":
		return "", nil, c.row(strings.TrimSpace(rest))
	case command == ":rule":
		r, diags := c.file.CompileRule(c.ctx, rule.Flag, rest)
		if diags.HasErrors() {
			return "", diags, nil
		}
		holds, err := r.Eval(c.ctx, cmp.Or(c.item, &rule.Env{}))
		return strconv.FormatBool(holds), nil, err
	case strings.HasPrefix(command, ":"):
		return "", nil, fmt.Errorf("there is no %s; there are :item, :row, :rule and :help", command)
	}
	value, diags = c.file.Evaluate(c.ctx, line)
	switch {
	case !diags.HasErrors() || !pipeline.NeedsItem(line):
		return value, diags, nil
	case c.item == nil:
		return "", nil, errors.New("there is no item yet: :item TEXT or :row N gives one")
	}
	return c.file.Inspect(c.ctx, line, c.item)
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
			c.item = &rule.Env{Item: sdk.Item{ID: row.ID, Text: row.Text, Meta: row.Meta}}
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
		Unknown           float64
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
	env := &rule.Env{Item: given.Item, Votes: given.Votes, Margin: given.Margin, Agreement: given.Agreement, Unknown: given.Unknown, Answer: given.Answer}
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
