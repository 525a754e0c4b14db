package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/explain"
	"github.com/racflow/racflow/engine/journal/compare"
	"github.com/racflow/racflow/engine/output"
	"github.com/racflow/racflow/engine/page"
	"github.com/racflow/racflow/engine/page/report"
)

func newReport() *cobra.Command {
	flags := fileFlags{}
	var to string
	c := &cobra.Command{
		Use:   "report RUN [RUN]",
		Short: "Write a page that explains a run, or compares two",
		Long: `Write a page that explains a run: one HTML file, which a browser shows without a
network. It has the totals, which labels are confused, how often the surest answers are
right and how far their confidence can be taken at its word, cost and time by stage,
and a table of the items, those first that failed, are wrong or flagged. Each opens to
what made its answer: candidates with scores and texts, prompts and replies, votes,
rules, retries and cost. RUN is the id of a run that is kept (racflow runs list shows
them), or newest.

  racflow run --keep all pipelines/intent.hcl
  racflow report newest

With two runs, the page compares the second with the first: which items are answered
differently and what made both answers, whether that is more than chance, and what
each run took.

What made an answer is known of items that are flagged, failed, wrong or without an
answer, and after run --keep all of every item. What is not there any more, since the
input, the file or the knowledge changed, is said on the page. The page holds texts of
your items and your knowledge: give it to nobody who may not see these.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 && len(args) != 2 {
				return errors.New("name a run, or newest, or two runs; racflow runs list shows them")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) (err error) {
			o, err := flags.options(nil)
			if err != nil {
				return err
			}
			if o.Log, err = newLog(); err != nil {
				return err
			}
			p, name, err := reportOf(c.Context(), c.ErrOrStderr(), o, args)
			if err != nil {
				return err
			}
			if to == "" {
				to = name + ".html"
			}
			file, err := output.Open(to, c.OutOrStdout())
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
	c.Flags().StringVar(&to, "output", "", "write the page to `FILE` (- is standard output; default: RUN.html)")
	c.Flags().StringVar(&flags.state, "state", stateDir, "`DIR` that keeps runs")
	flags.registerPlugins(c)
	return c
}

// reportOf returns the page of one run or two, and a name for it.
func reportOf(ctx context.Context, w io.Writer, o engine.Options, names []string) (p page.Page, name string, err error) {
	var compared *compare.Report
	if len(names) == 2 {
		if compared, err = compareRuns(w, o.State, names); err != nil {
			return p, "", err
		}
	}
	open := make([]*explain.Run, len(names))
	for i, run := range names {
		if open[i], err = explain.Open(ctx, o, run); err != nil {
			return p, "", err
		}
		defer open[i].Close()
	}
	if compared == nil {
		p, err = report.Of(ctx, open[0])
		return p, open[0].ID(), err
	}
	p, err = report.Compare(ctx, compared, open[0], open[1])
	return p, open[0].ID() + "-" + open[1].ID(), err
}
