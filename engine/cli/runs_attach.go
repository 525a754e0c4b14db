package cli

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/cluster/caller"
	"github.com/racflow/racflow/engine/cluster/definition"
	"github.com/racflow/racflow/engine/journal/runs"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/output"
	"github.com/racflow/racflow/engine/result"
)

func newRunsAttach() *cobra.Command {
	var on clusterFlags
	var to resultFlags
	var state string
	c := &cobra.Command{
		Use:   "attach ID",
		Short: "Come back to a run that was left to other machines",
		Long: `Come back to a run that racflow run --on SERVERS --detach has left to other machines:
write its results as they come, in the order of the input, and report what racflow run
would have reported. Nothing but the servers has to be here, neither the file nor the
input nor its models. ID is the run's name there, or that of the run in --state that was
left, which says the servers, too.

Results are kept in --state as those of any run, and are removed from the servers once all
of them are written here. Until then whoever interrupts this leaves the run as it is, and
may come back. So is a run left at the servers of which items lack an answer because a voter
had to stop: racflow run --resume asks for them, where its input is.

TSV, CSV and Parquet need to know all columns of the input: they are written once all results
are there.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("name the run that was left, as racflow run --detach has named it")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := to.check(); err != nil {
				return err
			}
			id, err := attachable(&on, state, args[0])
			if err != nil {
				return err
			}
			return attach(c, &on, &to, state, id)
		},
	}
	c.Flags().StringVar(&state, "state", stateDir, "`DIR` that keeps runs")
	on.register(c, "the run is at")
	to.register(c)
	return c
}

// attachable is the name of a run at servers, which a run that is kept here may say.
func attachable(on *clusterFlags, state, name string) (id string, err error) {
	id, kept := name, runs.Of(state)
	local, here := kept.Elsewhere(name)
	if runs.IsID(name) {
		local, here = name, true
	}
	if here {
		m, err := kept.Manifest(local)
		if err != nil {
			return "", err
		}
		if m.Cluster == nil {
			return "", fmt.Errorf("run %s is of this machine alone: racflow runs resume %[1]s goes on with it", m.ID)
		}
		if end := kept.End(local); end != nil && end.Complete {
			return "", fmt.Errorf("run %s has ended, and its results were written: racflow runs show %[1]s", m.ID)
		}
		id, on.servers = m.Cluster.Run, cmp.Or(on.servers, m.Cluster.Servers)
	}
	if !definition.IsID(id) {
		return "", fmt.Errorf("%q is not the name of a run at servers, such as %s", id, definition.NewID())
	}
	return id, nil
}

// attach takes the results of a run and writes them.
func attach(c *cobra.Command, on *clusterFlags, to *resultFlags, state, id string) (err error) {
	d := newDisplay()
	log, err := newLog()
	if err != nil {
		return err
	}
	conn, err := on.connect(c.Context(), d.print)
	if err != nil {
		return err
	}
	defer conn.Close()
	w, err := engine.NewWorkspace(c.Context(), engine.Options{
		Builtin: builtin, State: state, Log: log, Events: d.events(), Output: output.Target(to.name, c.OutOrStdout()),
	})
	if err != nil {
		return err
	}
	defer func() {
		d.progress.Clear()
		w.Close()
	}()
	run, err := caller.Attach(c.Context(), conn, id, w.State(), caller.Options{Servers: withoutUsers(on.servers), State: w.State(), Say: d.print, Log: log, Spent: d.spent})
	if err != nil {
		return err
	}
	defer func() { _ = run.Close() }() // it has nothing that is not at the servers
	local, _ := w.Runs().Elsewhere(id)
	results, err := to.openOf(c, w, resultSource{
		resume:  func() (string, error) { return local, nil },
		reaches: func(n int64) (bool, error) { return int64(run.Items()) >= n, nil },
		columns: func(bool) (in result.Input, err error) {
			err = run.Each(func(r outcome.Result) error {
				in.See(r)
				return nil
			})
			return in, err
		},
	})
	if err != nil {
		return errors.Join(err, run.Elsewhere().End(c.Context(), err))
	}
	defer func() { err = errors.Join(err, results.close()) }()
	o, err := w.Attach(c.Context(), run.Elsewhere(), results.write, results.finish)
	if o == nil {
		return err
	}
	if results.failed == nil && (err == nil || c.Context().Err() != nil) {
		where := ""
		if err == nil {
			where = results.file.Name()
		}
		summarize(c.ErrOrStderr(), o, where)
	}
	for _, m := range o.Missing {
		fmt.Fprintf(c.ErrOrStderr(), "%d items answered without %s: %s\n", m.Items, m.Stage, message(m.First))
	}
	if results.file.Partial() != "" {
		results.report(c.ErrOrStderr())
	}
	if err == nil && o.Incomplete() {
		err = &exitError{code: exitItemsFailed}
	}
	return err
}
