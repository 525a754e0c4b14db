package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/cluster/bus"
	"github.com/racflow/racflow/engine/cluster/caller"
	"github.com/racflow/racflow/engine/governor"
	"github.com/racflow/racflow/engine/journal/manifest"
	"github.com/racflow/racflow/engine/journal/runs"
	"github.com/racflow/racflow/engine/terminal"
)

// alone is what --on says where a run is to go on without other machines.
const alone = "none"

// remoteRun is what racflow run needs to have other machines answer.
type remoteRun struct {
	flags  clusterFlags
	detach bool
	claim  time.Duration

	display *display // nil: not there yet
	conn    *bus.Conn
	caller  *caller.Caller // nil: this machine answers
}

func (r *remoteRun) register(c *cobra.Command) {
	r.flags.register(c, "have other machines answer, each with racflow worker")
	c.Flags().BoolVar(&r.detach, "detach", false, "with --on: hand over the whole input and leave; racflow runs attach comes back")
	c.Flags().DurationVar(&r.claim, "claim", 30*time.Second, "with --on: how long a batch is a worker's own without a sign of life from it, before another gets it")
}

// check refuses flags that do not go together.
func (r *remoteRun) check(flags *fileFlags, to *resultFlags) error {
	o := flags.more
	switch {
	case r.detach && !r.flags.given():
		return errors.New("--detach leaves a run to other machines: name their NATS servers with --on")
	case !r.detach:
	case r.flags.servers == alone:
		return errors.New("--detach leaves a run to other machines, and --on none has none")
	case o.Spend.IsSet():
		return errors.New("with --calls or --budget it is decided here whom to ask about what, from the answers to all items: leave out --detach")
	case o.Again != "":
		return errors.New("with --again items are searched for here: leave out --detach")
	case to.name != "" || to.format != "" || to.columns != nil || to.overwrite:
		return errors.New("with --detach nothing is written here: name the output when you come back, with racflow runs attach")
	}
	if r.claim < time.Second {
		return errors.New("--claim is at least 1s: workers give signs of life only so often")
	}
	if o.Debug != "" && r.flags.given() && r.flags.servers != alone {
		return errors.New("--debug is for stages that run here: leave out --on")
	}
	return nil
}

// open connects to the servers and makes the Remote of the run, where --on names some, or the run that is
// resumed was there.
func (r *remoteRun) open(c *cobra.Command, flags *fileFlags, file string) error {
	if r.flags.servers == alone {
		r.flags.servers = ""
		return nil
	}
	if !r.flags.given() {
		at := resumedAt(flags, file)
		if at == nil {
			return nil
		}
		r.say("run %s goes on at %s; --on none resumes it without other machines", at.Run, at.Servers)
		r.flags.servers = at.Servers
	}
	log, err := newLog()
	if err != nil {
		return err
	}
	if r.conn, err = r.flags.connect(c.Context(), r.say); err != nil {
		return err
	}
	r.caller, err = caller.New(r.conn, caller.Options{
		Servers: withoutUsers(r.flags.servers), State: flags.state, Claim: r.claim,
		Say: r.say, Log: log, Spent: func(s governor.Snapshot) {
			if r.display != nil {
				r.display.spent(s)
			}
		},
	})
	if err != nil {
		r.conn.Close()
		return err
	}
	flags.more.Remote, flags.more.Cluster = r.caller, &manifest.Cluster{Run: r.caller.Run(), Servers: withoutUsers(r.flags.servers)}
	return nil
}

// resumedAt is where the run is that is to be resumed; nil: on this machine alone, or there is none.
func resumedAt(flags *fileFlags, file string) *manifest.Cluster {
	kept, id := runs.Of(flags.state), flags.more.Resume
	if id == "" {
		return nil
	}
	if id != engine.Newest {
		m, _ := kept.Manifest(id) // that it is not there is said later
		return m.Cluster
	}
	path, err := filepath.Abs(file)
	if err != nil {
		return nil
	}
	for _, one := range slices.Backward(kept.List()) {
		m := one.Manifest
		if m.File == path && (flags.pipeline == "" || m.Pipeline == flags.pipeline) && (one.State == runs.Unfinished || one.State == runs.FailedItems) {
			return m.Cluster
		}
	}
	return nil
}

// shows has sentences go through a display from now on.
func (r *remoteRun) shows(d *display) { r.display = d }

// say says something to a person.
func (r *remoteRun) say(format string, args ...any) {
	if r.display != nil {
		r.display.print(format, args...)
		return
	}
	fmt.Fprintln(os.Stderr, terminal.Sanitize(fmt.Sprintf(format, args...)))
}

// close closes the connection.
func (r *remoteRun) close() {
	if r.conn != nil {
		r.conn.Close()
	}
}

// leave hands the input over, and says how to come back.
func (r *remoteRun) leave(c *cobra.Command, p *engine.Pipeline) error {
	left, err := p.Detach(c.Context())
	if err != nil {
		return err
	}
	r.display.progress.Clear()
	fmt.Fprintf(c.ErrOrStderr(), "racflow runs attach %s --on %s --output FILE comes back for the results, from any machine\n", r.caller.Run(), withoutUsers(r.flags.servers))
	if left.Run != "" {
		fmt.Fprintf(c.ErrOrStderr(), "here, racflow runs attach %s does\n", left.Run)
	}
	return nil
}
