package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/show/page"
	"github.com/racflow/racflow/engine/internal/show/review"
	"github.com/racflow/racflow/engine/internal/terminal"
)

var reviewLong = `RUN is the id of a run that is kept (racflow runs list shows them), or newest. The page shows the most doubtful
item first, with its votes and what was found. Keys: 1 to 9 take a suggested label, / finds another one, s skips,
u undoes, ? shows all keys. With --findings, the page has the rows of FILE's knowledge in which racflow doctor
finds something wrong.

With --next 50, the page has the 50 texts of RUN whose labels teach most, doubtful or not: those that stand for many
doubtful texts that no labelled text is close to. Texts that were decided, that the knowledge has, or that nearly
repeat another one are left out. Run a pipeline over texts without labels, decide, run it again, and so on.

Each decision is at once a line of a file of JSON lines, to be edited and committed: who decided what, when, about
which item. The knowledge reads it as one more source:

  knowledge "utterances" {
    source { path = "utterances.tsv" }
    source {
      path     = "reviewed.jsonl"
      reviewed = true
    }
  }

Where it has none, decisions go to ` + review.DefaultFile + ` beside the pipeline's file, or to --decisions. Decided
texts are examples from then on, and items with these texts are answered by them. The next racflow run FILE uses
them; what models said about other items comes from the response cache.

Several people can review at once, each on a page of their own. The page is served at a loopback address with
a random token in its URL. Finish or Ctrl-C ends the review.`

func newReview() *cobra.Command {
	var flags fileFlags
	var o review.Options
	var findings bool
	var reviewer string
	var port uint16
	c := &cobra.Command{
		Use:   "review RUN | FILE --findings",
		Short: "Decide about doubtful answers, or about findings of doctor, on a local page",
		Long:  reviewLong,
		Example: `  racflow review newest
  racflow review newest --reviewer ada
  racflow review newest --next 50
  racflow review pipelines/intent.hcl --findings`,
		Args: words(1, "name one run, or newest, or a pipeline file with --findings; racflow runs list shows the runs"),
		RunE: func(c *cobra.Command, args []string) error {
			switch next := c.Flags().Changed("next"); {
			case o.Votes < 0:
				return errors.New("--votes: it is a number of rows, at least 0")
			case next && o.Next < 1:
				return errors.New("--next: it is a number of texts, at least 1")
			case next && findings:
				return errors.New("--next picks texts of a run: leave out --findings, and name a run in place of FILE")
			}
			is, err := openReview(c, &flags, args[0], findings, o)
			if err != nil {
				return err
			}
			for _, gone := range is.Gone {
				fmt.Fprintln(c.ErrOrStderr(), "not there any more:", terminal.Sanitize(gone))
			}
			if len(is.Cases()) == 0 {
				advice := ""
				if !findings && o.Next == 0 {
					advice = ": no answer is flagged; racflow review --next 50 " + args[0] + " shows the texts whose labels teach most"
				}
				fmt.Fprintf(c.ErrOrStderr(), "%s: there is nothing to decide%s\n", terminal.Sanitize(is.Title), advice)
				return nil
			}
			return serveReview(c, is, cmp.Or(reviewer, userName()), port, flags.state)
		},
	}
	flags.register(c)
	flags.registerInput(c)
	c.Flags().BoolVar(&findings, "findings", false, "review what racflow doctor finds in the knowledge of FILE")
	c.Flags().IntVar(&o.Next, "next", 0, "review the `N` texts of RUN whose labels teach most, in place of the doubtful ones")
	c.Flags().StringVar(&reviewer, "reviewer", "", "the `NAME` that decisions are kept with, unless the page gets another (default: yours on this machine)")
	c.Flags().StringVar(&o.Knowledge, "knowledge", "", "the knowledge that learns from the decisions, by its `NAME`, where several are made of rows")
	c.Flags().StringVar(&o.Path, "decisions", "", "keep decisions in `FILE`, in place of the one that the knowledge reads")
	c.Flags().IntVar(&o.Votes, "votes", votedRows, "with --findings: ask voters about the labels of at most `N` rows; 0: of none")
	c.Flags().Uint16Var(&port, "port", 0, "serve the page at this `PORT` (default: a free one)")
	return c
}

// openReview reads the cases to decide.
func openReview(c *cobra.Command, flags *fileFlags, name string, findings bool, o review.Options) (is *review.Review, err error) {
	if findings {
		err = flags.files(c, func(a *app) error {
			is, err = review.OpenFindings(c.Context(), a.Workspace, name, o)
			return err
		})
		return is, err
	}
	given, err := flags.options(nil)
	if err != nil {
		return nil, err
	}
	if given.Log, err = newLog(c); err != nil {
		return nil, err
	}
	is, err = review.OpenRun(c.Context(), given, name, o)
	if _, missing := os.Stat(name); err != nil && missing == nil {
		err = fmt.Errorf("%w; %s is a file: --findings reviews what racflow doctor finds in its knowledge", err, name)
	}
	return is, err
}

// serveReview shows the page until the review is finished.
func serveReview(c *cobra.Command, is *review.Review, reviewer string, port uint16, state string) error {
	var notes []string
	if is.Place.Add != "" {
		notes = []string{fmt.Sprintf("%s does not read these decisions yet. Add to knowledge %q:\n\n%s", is.File, is.Place.Knowledge, is.Place.Add)}
	}
	s, err := page.NewReviewServer(is.Queue, page.ReviewOptions{Title: is.Title, Reviewer: reviewer, Notes: notes, Details: is.Details})
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(c.Context(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
	if err != nil {
		return fmt.Errorf("%w; leave --port out for a free one", err)
	}
	before, _ := is.Decisions()
	w := c.ErrOrStderr()
	fmt.Fprintf(w, "%s to decide, %d decided; open this address in a browser of this machine:\n\n  %s\n\nFinish on the page, or press Ctrl-C\n", terminal.Plural(len(is.Cases()), "case"), len(before), s.URL(l.Addr()))
	if err := s.Serve(c.Context(), l); err != nil {
		return err
	}
	return reportReview(w, is, state)
}

// reportReview reports what was decided, and what to do next.
func reportReview(w io.Writer, is *review.Review, state string) error {
	now, errs := is.Decisions()
	fmt.Fprintf(w, "%d of %s decided, in %s\n", len(now), terminal.Plural(len(is.Cases()), "case"), shownPath(is.Path()))
	for _, err := range errs {
		fmt.Fprintln(w, "warning:", terminal.Sanitize(err.Error()))
	}
	if len(now) == 0 {
		return nil
	}
	if is.Place.Add != "" {
		fmt.Fprintf(w, "add to knowledge %q in %s:\n\n%s\n", is.Place.Knowledge, shownPath(is.File), is.Place.Add)
	}
	fmt.Fprintf(w, "then answer anew, with the decisions:\n\n  %s\n", strings.Join(againCommand(is, state), " "))
	if given := is.Manifest.Command; given != nil && len(given.Withheld) > 0 {
		fmt.Fprintf(w, "with what the run was given for %s, which is a secret and not kept\n", terminal.Sanitize(strings.Join(given.Withheld, ", ")))
	}
	return nil
}

// againCommand returns the shell command that uses the decisions.
func againCommand(is *review.Review, state string) []string {
	args := []string{"racflow", "run", quotedArgument(shownPath(is.File))}
	if is.Manifest.ID == "" { // findings come from no run
		return args
	}
	if state != stateDir {
		args = append(args, "--state", quotedArgument(state))
	}
	given := is.Manifest.Command
	if given == nil {
		given = &journal.ManifestCommand{}
	}
	if dir, err := os.Getwd(); err == nil && given.Dir != "" && given.Dir != dir {
		args = append([]string{"cd", quotedArgument(given.Dir), "&&", "racflow", "run", quotedArgument(is.File)}, args[3:]...)
		if abs, err := filepath.Abs(state); err == nil && state == stateDir && abs != filepath.Join(given.Dir, stateDir) {
			args = append(args, "--state", quotedArgument(abs))
		}
	}
	for _, f := range given.Flags {
		args = append(args, "--"+f.Name+"="+quotedArgument(f.Value))
		if f.Name == "output" {
			args = append(args, "--overwrite")
		}
	}
	return args
}

// quotedArgument quotes a text as one argument of a shell.
func quotedArgument(text string) string {
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%", r)
	}) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// userName returns this machine's name for the current user; empty: unknown.
func userName() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	name, _, _ := strings.Cut(u.Name, ",") // the rest comes from other columns of passwd
	return cmp.Or(strings.TrimSpace(name), u.Username)
}
