package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/remote/bus"
	"github.com/racflow/racflow/engine/internal/remote/caller"

	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/show/terminal"
)

// has reports whether a run that a person names is one at servers.
func (f *clusterFlags) has(id string) bool {
	return f.given() || caller.IsRunID(id) && os.Getenv(serversVariable) != ""
}

// saying writes sentences to a verb's standard error.
func saying(c *cobra.Command) func(string, ...any) {
	return func(format string, args ...any) {
		fmt.Fprintln(c.ErrOrStderr(), terminal.Sanitize(fmt.Sprintf(format, args...)))
	}
}

// list shows the runs at the servers.
func (f *clusterFlags) list(c *cobra.Command, asJSON bool) error {
	conn, err := f.connect(c, saying(c))
	if err != nil {
		return err
	}
	defer conn.Close()
	ids, err := conn.Runs(c.Context())
	if err != nil {
		return err
	}
	lines := json.NewEncoder(c.OutOrStdout())
	tw := terminal.NewTable(c.OutOrStdout())
	if !asJSON {
		fmt.Fprintln(tw, "RUN\tSTARTED\tFILE\tPIPELINE\tSTATE\tANSWERED\tRATE\tLEFT\tWORKERS\tTOKENS\tCOST")
	}
	for _, id := range ids {
		s, err := statusAt(c.Context(), conn, id)
		switch {
		case errors.Is(err, bus.ErrNoRun): // it was removed meanwhile
			continue
		case err != nil && c.Context().Err() != nil:
			return err
		case err != nil:
			saying(c)("warning: run %s: %v", id, err)
			continue
		case asJSON:
			if err := lines.Encode(s); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\n", s.Run, startedAt(s.Started), shownPath(s.File), terminal.Escape(cmp.Or(s.Pipeline, "-")), s.State,
			ofAll(s.Items.Answered, s.Items.Total), rate(s.Items.Rate), cmp.Or(left(s), "-"), s.Working(), s.Tokens, costOf(s.Cost))
	}
	return tw.Flush()
}

// show shows one run at the servers, which may be named by the run in a state folder that began it.
func (f *clusterFlags) show(c *cobra.Command, state, id string, asJSON bool) error {
	if journal.IsRunID(id) {
		m, err := journal.RunsOf(state).Manifest(id)
		if err != nil {
			return err
		}
		if m.Cluster == nil {
			return fmt.Errorf("run %s is of this machine alone: leave out --on", id)
		}
		id = m.Cluster.Run
	}
	conn, err := f.connect(c, saying(c))
	if err != nil {
		return err
	}
	defer conn.Close()
	if id == engine.Newest {
		ids, err := conn.Runs(c.Context())
		if err != nil {
			return err
		}
		if len(ids) == 0 {
			return errors.New("no run is at the servers")
		}
		id = ids[len(ids)-1]
	}
	s, err := statusAt(c.Context(), conn, id)
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(c.OutOrStdout(), s)
	}
	return writeStatus(c.OutOrStdout(), s)
}

// statusAt says how a run at the servers is.
func statusAt(ctx context.Context, conn *bus.Conn, id string) (*caller.Status, error) {
	run, err := openAt(ctx, conn, id)
	if err != nil {
		return nil, err
	}
	return caller.StatusOf(ctx, run)
}

func openAt(ctx context.Context, conn *bus.Conn, id string) (*bus.Run, error) {
	run, err := conn.Open(ctx, id)
	if errors.Is(err, bus.ErrNoRun) {
		return nil, fmt.Errorf("%w; racflow runs list --on shows those that are there, and one that is over is kept by its caller", err)
	}
	return run, err
}

// removeAt removes a run from the servers, unless its caller is at work.
func removeAt(ctx context.Context, conn *bus.Conn, id string) error {
	run, err := openAt(ctx, conn, id)
	if err != nil {
		return err
	}
	// One of a newer racflow cannot be looked into, and nobody else may be there to remove it.
	if s, err := caller.StatusOf(ctx, run); err == nil && s.Attended() {
		return fmt.Errorf("run %s is not removed: its caller %s is at work on %s; end that first", id, s.Caller.Name, s.Caller.Host)
	} else if ctx.Err() != nil {
		return err
	}
	return run.Remove(ctx)
}

// ofAll is a number of all, where these are known.
func ofAll(n, of int64) string {
	if of == 0 {
		return strconv.FormatInt(n, 10)
	}
	return fmt.Sprintf("%d of %d", n, of)
}

func rate(perSecond float64) string {
	if perSecond < 10 {
		return fmt.Sprintf("%.1f/s", perSecond)
	}
	return fmt.Sprintf("%.0f/s", perSecond)
}

// left is how long the rest takes; empty: nobody knows.
func left(s *caller.Status) string {
	if s.Items.Left == 0 {
		return ""
	}
	return seconds(s.Items.Left)
}

func seconds(n float64) string {
	return time.Duration(n * float64(time.Second)).Round(time.Second).String()
}

// writeStatus shows a run at the servers to people.
func writeStatus(w io.Writer, s *caller.Status) error {
	tw := terminal.NewTable(w)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(tw, "%s\t%s\n", name, terminal.Escape(fmt.Sprintf(format, args...)))
	}
	line("run", "%s, %s", s.Run, s.State)
	if s.Why != "" {
		line("why", "%s", s.Why)
	}
	line("started", "%s by racflow %s", startedAt(s.Started), s.Version)
	line("file", "%s, pipeline %s", s.File, s.Pipeline)
	line("input", "%s", s.Input)
	items := ofAll(s.Items.Answered, s.Items.Total) + " answered"
	if s.Failed > 0 {
		items += fmt.Sprintf(", %d failed", s.Failed)
	}
	items += ", " + rate(s.Items.Rate) + " now"
	if rest := left(s); rest != "" {
		items += ", " + rest + " left"
	}
	line("items", "%s", items)
	b := s.Batches
	line("batches", "%s published, %d answered, %d with the caller", ofAll(b.Published, b.Total), b.Answered, b.Done)
	lag := fmt.Sprintf("%d waiting, %d under way", b.Waiting, b.UnderWay)
	if b.Oldest != nil {
		lag += fmt.Sprintf(", the oldest for %s", seconds(b.Age))
	}
	line("lag", "%s", lag)
	line("took", "%d tokens, cost %s", s.Tokens, costOf(s.Cost))
	if s.Keeper != nil {
		line("limits", "%s", s.Keeper)
	}
	if s.Caller != nil {
		line("caller", "%s", s.Caller)
	}
	if s.Journal != "" {
		line("journal", "%s, where its caller keeps runs", s.Journal)
	}
	if err := tw.Flush(); err != nil || len(s.Workers) == 0 {
		return err
	}
	tw = terminal.NewTable(w)
	fmt.Fprintln(tw, "\nWORKER\tHOST\tSTATE\tBATCHES\tITEMS\tFAILED\tRATE\tTOKENS\tCOST")
	for _, worker := range s.Workers {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%d\t%d\t%d\t%s\t%d\t%s\n", terminal.Escape(worker.Name), terminal.Escape(worker.Host), terminal.Escape(worker.Is()),
			worker.Batches, worker.Items, worker.Failed, rate(worker.Rate), worker.Tokens, costOf(worker.Cost))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, worker := range s.Workers {
		for _, lack := range worker.Lacks {
			fmt.Fprintf(w, "%s lacks: %s\n", terminal.Escape(worker.Name), terminal.Escape(lack))
		}
	}
	return nil
}
