package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/run/output"
	"github.com/racflow/racflow/engine/internal/show/explain"
	"github.com/racflow/racflow/engine/internal/show/page"
	"github.com/racflow/racflow/engine/internal/terminal"
	"github.com/racflow/racflow/engine/internal/workspace"
)

const explainLong = `RUN is the id of a run that is kept (racflow runs list shows them), or newest; ID is the item's, or its line in
the input.

The journal notes ids, scores and hashes of items that are flagged, failed, wrong or without an answer, and after
run --keep all of every item. Texts are found again: candidates in the knowledge, replies in the response
cache, prompts by writing them anew and comparing the hash. It says what is no longer there. No service is called.`

func newExplain() *cobra.Command {
	flags := fileFlags{}
	var asJSON bool
	c := &cobra.Command{
		Use:   "explain RUN ID",
		Short: "Show what made one answer of a run",
		Long:  explainLong,
		Example: `  racflow explain newest test-0012
  racflow explain newest 12
  racflow explain --json run-000001 test-0012`,
		Args: words(2, "name a run, or newest, and an item by its id or its line; racflow runs list shows the runs"),
		RunE: func(c *cobra.Command, args []string) error {
			o, err := flags.options(nil)
			if err != nil {
				return err
			}
			if o.Log, err = newLog(c); err != nil {
				return err
			}
			run, err := explain.Open(c.Context(), o, args[0])
			if err != nil {
				return err
			}
			defer run.Close()
			item, err := run.Item(c.Context(), args[1])
			if err != nil {
				return err
			}
			shown := explained{Run: run.ID(), Item: item, RunGone: run.Gone()}
			if asJSON {
				return writeJSON(c.OutOrStdout(), shown)
			}
			return shown.write(c.OutOrStdout())
		},
	}
	c.Flags().StringVar(&flags.state, "state", stateDir, "`DIR` that keeps runs")
	flags.registerPlugins(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return c
}

// explained is an item of a run with everything that led to its answer.
type explained struct {
	Run string `json:"run"`
	*explain.Item
	RunGone []string `json:"run_gone,omitempty"` // of the whole run
}

func (e explained) write(w io.Writer) error {
	fmt.Fprintf(w, "item %s, line %d of the input of %s: %s\n", terminal.Escape(e.ID), e.Line, e.Run, e.Status)
	if e.Text != "" {
		fmt.Fprintf(w, "\n%s\n\n", indented(e.Text))
	}
	tw := terminal.NewTable(w)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(tw, "%s\t%s\n", name, terminal.Escape(fmt.Sprintf(format, args...)))
	}
	if e.Error != nil {
		line("error", "%s", e.Error.Error())
	} else {
		line("answer", "%s", shownAnswer(string(e.Answer)))
	}
	for _, part := range [][2]string{{"labels", output.LabelsText(e.Labels)}, {"expected", e.Expected}, {"reason", e.Reason}, {"without", strings.Join(e.Missing, ", ")}} {
		if part[1] != "" {
			line(part[0], "%s", part[1])
		}
	}
	if e.Error == nil && len(e.Votes) > 0 {
		line("agreement", "%.3f, confidence %.3f, unknown %.3f, flagged %v", e.Agreement, e.Confidence, e.Unknown, e.Flagged)
	}
	for _, voter := range slices.Sorted(maps.Keys(e.Usages)) {
		u := e.Usages[voter]
		line("took", "sample.%s: %d tokens in, %d of them cached, and %d out, cost %s", voter, u.Input, u.Cached, u.Output, costOf(e.Cost[voter]))
	}
	for _, r := range e.Rules {
		line("rule", "%s: %s", r.Stage, ruleShown(r))
	}
	for _, r := range e.Retries {
		line("retry", "%s: called again %s: %s", r.Stage, times(r.Times), r.Why)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if len(e.Votes) > 0 {
		fmt.Fprintln(tw, "\nVOTER\tANSWER\tWEIGHT\tVOTER'S WEIGHT\tCOUNTS\tWHY NOT")
		for _, v := range e.Votes {
			of := "-"
			counts, why := e.Counts(v)
			if weight, known := e.Weights[v.Voter]; known {
				of = fmt.Sprintf("%.3f", weight)
			}
			fmt.Fprintf(tw, "%s\t%s\t%.3f\t%s\t%v\t%s\n", v.Voter, shownAnswer(v.Answer), v.Weight, of, counts, terminal.Escape(why))
		}
	}
	e.writeSeen(tw)
	for _, g := range slices.Concat(e.Gone, e.RunGone) {
		fmt.Fprintf(tw, "\nnot there any more: %s\n", message(errors.New(g)))
	}
	return tw.Flush()
}

func ruleShown(r explain.Rule) string {
	if r.Text == "" {
		return fmt.Sprintf("%s: %s", r.Rule, r.What)
	}
	return fmt.Sprintf("%s = %q: %s", r.Rule, r.Text, r.What)
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// writeSeen writes the candidates, prompts and replies.
func (e explained) writeSeen(w io.Writer) {
	for _, l := range e.Lists {
		fmt.Fprintf(w, "\n%s\nCANDIDATE\tSCORE\tLABEL\tTEXT\n", terminal.Escape(l.Stage))
		for _, c := range l.Candidates {
			fmt.Fprintf(w, "%s\t%.4f\t%s\t%s\n", terminal.Escape(c.ID), c.Score, terminal.Escape(c.Label), terminal.Escape(terminal.Shorten(c.Text, 60)))
		}
	}
	for _, of := range e.Prompts {
		for _, p := range of.Prompts {
			fmt.Fprintf(w, "\nprompt of %s:\n", of.Stage)
			if p.Text != "" {
				fmt.Fprintf(w, "%s\n", indented(p.Text))
			}
			for _, m := range p.Messages {
				fmt.Fprintf(w, "  [%s]\n%s\n", m.Role, indented(m.Text))
			}
		}
	}
	for _, reply := range e.Replies {
		fmt.Fprintf(w, "\nreply to sample.%s:\n%s\n", reply.Voter, indented(reply.Text))
	}
}

// indented returns a text of several lines, indented for people.
func indented(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString("  " + terminal.Line(strings.TrimRight(line, "\r\n")) + "\n")
	}
	return strings.TrimRight(out.String(), "\n")
}

const reportLong = `The page is one HTML file that needs no network: totals, confused labels, how far confidence can be trusted, cost
and time by stage, and a table of the items, failed, wrong and flagged ones first. Each item opens to what made
its answer. RUN is the id of a run that is kept (racflow runs list shows them), or newest.

With OTHER the page shows both side by side: figures, labels that gained or lost, and the items that are answered
differently.

After run --keep all, the page can explain every item, not only those that need a look. It holds texts of your
items and your knowledge: give it to nobody who may not see these.`

// reportPage makes the page of a run, or of two runs to compare.
func reportPage(c *cobra.Command, run *explain.Run, o workspace.Options, state string, args []string) (page.Page, error) {
	if len(args) == 1 {
		return page.RunPage(c.Context(), run)
	}
	comparison, err := compareRuns(c.ErrOrStderr(), state, args)
	if err != nil {
		return page.Page{}, err
	}
	other, err := explain.Open(c.Context(), o, args[1])
	if err != nil {
		return page.Page{}, err
	}
	defer other.Close()
	return page.ComparePage(c.Context(), run, other, comparison)
}

func newReport() *cobra.Command {
	flags := fileFlags{}
	var to string
	c := &cobra.Command{
		Use:   "report RUN [OTHER]",
		Short: "Write a page that explains a run, or shows two side by side",
		Long:  reportLong,
		Example: `  racflow report newest
  racflow report newest --output report.html
  racflow report run-000001 newest`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 || len(args) == 2 {
				return nil
			}
			return errors.New("name a run or two, or newest; racflow runs list shows them")
		},
		RunE: func(c *cobra.Command, args []string) (err error) {
			o, err := flags.options(nil)
			if err != nil {
				return err
			}
			if o.Log, err = newLog(c); err != nil {
				return err
			}
			run, err := explain.Open(c.Context(), o, args[0])
			if err != nil {
				return err
			}
			defer run.Close()
			p, err := reportPage(c, run, o, flags.state, args)
			if err != nil {
				return err
			}
			if to == "" {
				to = strings.ReplaceAll(p.Title, " ", "-") + ".html"
				if info, err := os.Lstat(to); err == nil && info.Mode()&os.ModeSymlink != 0 { // anybody can guess the name, and put a link there
					return fmt.Errorf("%s is a link: name the page with --output", to)
				}
			}
			file, err := disk.OpenOutput(to, terminal.Data(c.OutOrStdout()))
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, file.Close()) }()
			out := bufio.NewWriter(file)
			if err = p.Write(out); err == nil {
				err = out.Flush()
			}
			if err == nil {
				err = file.Commit()
			}
			if err != nil {
				return fmt.Errorf("write the page: %w", err)
			}
			if info, statErr := os.Stat(to); statErr == nil && info.Mode().IsRegular() {
				fmt.Fprintf(c.ErrOrStderr(), "%s (%s): open it in a browser\n", to, size(info.Size()))
			}
			return nil
		},
	}
	c.Flags().StringVarP(&to, "output", "o", "", "write the page to `FILE` (- is standard output; default: RUN.html)")
	c.Flags().StringVar(&flags.state, "state", stateDir, "`DIR` that keeps runs")
	flags.registerPlugins(c)
	return c
}
