package cli

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/process/governor"
	"github.com/racflow/racflow/engine/internal/remote/bus"
	"github.com/racflow/racflow/engine/internal/remote/caller"
	"github.com/racflow/racflow/engine/internal/remote/sharing"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/show/terminal"
)

// Variables of the environment that say what the flags of clusterFlags do not. Servers may name a user and a password
// here, and only here: what stands in a command line, every user of the machine can read.
const (
	serversVariable     = "RACFLOW_NATS_SERVERS"
	credentialsVariable = "RACFLOW_NATS_CREDENTIALS" //nolint:gosec // a name
	caVariable          = "RACFLOW_NATS_CA"
	certVariable        = "RACFLOW_NATS_CERT"
	keyVariable         = "RACFLOW_NATS_KEY"
	shareVariable       = "RACFLOW_SHARE"
)

// clusterFlags say at which NATS servers a verb works, and who it is there.
type clusterFlags struct {
	servers, credentials, ca, cert, key string
}

// register adds the flags to a verb. what says what happens at the servers, such as "answer on workers
// there".
func (f *clusterFlags) register(c *cobra.Command, what string) {
	section(c, "Other machines", func(c *cobra.Command) {
		c.Flags().Var((*serversFlag)(&f.servers), "on", what+": the `SERVERS` of NATS, such as nats://a,b,c:4222, or tls://...; the address alone, and no password")
		c.Flags().StringVar(&f.credentials, "on-credentials", "", "`FILE` with the credentials for --on (.creds), or "+credentialsVariable)
		c.Flags().StringVar(&f.ca, "on-ca", "", "`FILE` with the authority that signed the certificates of --on, or "+caVariable)
		c.Flags().StringVar(&f.cert, "on-cert", "", "`FILE` with the certificate to show to --on, or "+certVariable)
		c.Flags().StringVar(&f.key, "on-key", "", "`FILE` with its key, or "+keyVariable)
		for _, name := range []string{"on-credentials", "on-ca", "on-cert", "on-key"} {
			if err := c.MarkFlagFilename(name); err != nil {
				panic(err) // the flag is there
			}
		}
	})
}

// serversFlag names servers. An empty name, as of a variable of the shell that is not set, would have this machine do
// everything.
type serversFlag string

func (f *serversFlag) Set(servers string) error {
	if servers == "" {
		return errors.New("it names no servers; is a variable of the shell not set?")
	}
	*f = serversFlag(servers)
	return nil
}

func (f *serversFlag) String() string { return string(*f) }

func (*serversFlag) Type() string { return "string" }

// connect reaches the servers. say is given sentences for people, such as that the servers are waited
// for.
func (f *clusterFlags) connect(c *cobra.Command, say func(format string, args ...any)) (*bus.Conn, error) {
	if err := f.resolve(); err != nil {
		return nil, err
	}
	log, err := newLog(c)
	if err != nil {
		return nil, err
	}
	return bus.Connect(c.Context(), bus.Options{
		Servers: f.servers, Name: processName(), Credentials: f.credentials, CA: f.ca, Certificate: f.cert, Key: f.key, Log: log,
		Waiting: func(why error) {
			if why == nil {
				say("the servers are back")
			} else {
				say("waiting: %v", why)
			}
		},
	})
}

// processName names this process among those of all machines. Containers may have one host name and
// process number: its end is random.
func processName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s-%d-%s", host, os.Getpid(), caller.NewRunID()[:6])
}

// given reports whether the command line names servers. Where a verb has nothing to do without any,
// those of the environment do as well.
func (f *clusterFlags) given() bool { return f.servers != "" }

// resolve adds what the environment says, and refuses what cannot be. It asks nobody.
func (f *clusterFlags) resolve() error {
	for _, server := range strings.Split(f.servers, ",") {
		if strings.Contains(server, "@") {
			return errors.New("--on names a user or a password, which everybody on this machine could read: name a file with --on-credentials, or all of it in " + serversVariable)
		}
	}
	if all := os.Getenv(serversVariable); f.servers != "" && withoutUsers(all) == f.servers {
		f.servers = all // with the user and the password
	}
	for _, of := range []struct {
		flag     *string
		variable string
	}{{&f.servers, serversVariable}, {&f.credentials, credentialsVariable}, {&f.ca, caVariable}, {&f.cert, certVariable}, {&f.key, keyVariable}} {
		*of.flag = cmp.Or(*of.flag, os.Getenv(of.variable))
	}
	switch {
	case f.servers == "":
		return errors.New("name the servers of NATS: --on nats://HOST, or " + serversVariable + " in the environment")
	case (f.cert == "") != (f.key == ""):
		return errors.New("--on-cert and --on-key belong together: name both or neither")
	}
	for flag, file := range map[string]string{"--on-credentials": f.credentials, "--on-ca": f.ca, "--on-cert": f.cert, "--on-key": f.key} {
		if file == "" {
			continue
		}
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("%s: %w", flag, err)
		}
	}
	return nil
}

// withoutUsers is a list of servers without users and passwords.
func withoutUsers(servers string) string {
	all := strings.Split(servers, ",")
	for i, server := range all {
		scheme, rest, ok := strings.Cut(server, "://")
		if !ok {
			scheme, rest = "", server
		} else {
			scheme += "://"
		}
		all[i] = scheme + rest[strings.LastIndex(rest, "@")+1:]
	}
	return strings.Join(all, ",")
}

// alone is what --on says where a run is to go on without other machines.
const alone = "none"

// remoteRun is what racflow run needs to have other machines answer.
type remoteRun struct {
	flags  clusterFlags
	share  string // servers, of a run that this machine answers
	detach bool
	claim  time.Duration

	display *display // nil: not there yet
	conn    *bus.Conn
	sharing *sharing.Client // nil: there are no servers
	caller  *caller.Caller  // nil: this machine answers
}

func (r *remoteRun) register(c *cobra.Command) {
	r.flags.register(c, "have other machines answer, each with racflow worker")
	section(c, "Other machines", r.registerOwn)
}

func (r *remoteRun) registerOwn(c *cobra.Command) {
	c.Flags().Var((*serversFlag)(&r.share), "share", "answer on this machine alone, and share limits and answers that the file names as shared with other runs at these `SERVERS` of NATS, or "+shareVariable)
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
	if r.share != "" && r.flags.given() && r.flags.servers != alone {
		return errors.New("--on shares at its own servers: leave out --share")
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
		return r.openShare(c, flags)
	}
	if !r.flags.given() {
		at, err := resumedAt(flags, file)
		if err != nil || at == nil {
			return errors.Join(err, r.openShare(c, flags))
		}
		r.say("run %s goes on at %s; --on none resumes it without other machines", at.Run, at.Servers)
		r.flags.servers = at.Servers
	}
	log, err := r.connect(c, flags)
	if err != nil {
		return err
	}
	r.caller, err = caller.New(r.conn, caller.Options{
		Share:   r.sharing.Limit,
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
	flags.more.Remote, flags.more.Cluster = r.caller, &journal.ManifestCluster{Run: r.caller.Run(), Servers: withoutUsers(r.flags.servers)}
	return nil
}

// sharedIn names the blocks of a file that runs share.
func sharedIn(f *pipeline.File) (blocks []string) {
	for _, l := range f.Limits {
		if l.Shared != "" {
			blocks = append(blocks, fmt.Sprintf("limit %q", l.Name))
		}
	}
	if f.Cache.Shared != "" {
		blocks = append(blocks, "cache")
	}
	return blocks
}

// openShare connects to the servers at which a run without workers shares limits and answers, if there are any.
func (r *remoteRun) openShare(c *cobra.Command, flags *fileFlags) error {
	r.flags.servers = cmp.Or(r.share, os.Getenv(shareVariable))
	if r.flags.servers == "" {
		return nil
	}
	_, err := r.connect(c, flags)
	return err
}

// connect connects to the servers, and prepares to share there what the file names as shared.
func (r *remoteRun) connect(c *cobra.Command, flags *fileFlags) (log *slog.Logger, err error) {
	if log, err = newLog(c); err != nil {
		return nil, err
	}
	if r.conn, err = r.flags.connect(c, r.say); err != nil {
		return nil, err
	}
	r.sharing = sharing.New(c.Context(), r.conn, bus.Caller, log)
	flags.sharing = r.sharing
	return log, nil
}

// resumedAt is where the run is that is to be resumed; nil: on this machine alone, or there is none.
func resumedAt(flags *fileFlags, file string) (*journal.ManifestCluster, error) {
	kept, id := journal.RunsOf(flags.state), flags.more.Resume
	if id == "" {
		return nil, nil
	}
	if id != engine.Newest {
		m, _ := kept.Manifest(id) // that it is not there is said later
		return m.Cluster, ownServers(m)
	}
	path, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	for _, one := range slices.Backward(kept.List()) {
		m := one.Manifest
		if m.File == path && (flags.pipeline == "" || m.Pipeline == flags.pipeline) && (one.State == journal.Unfinished || one.State == journal.FailedItems) {
			return m.Cluster, ownServers(m)
		}
	}
	return nil, nil
}

// ownServers refuses the servers of a run that somebody else may have named.
func ownServers(m journal.Manifest) error {
	if m.Cluster == nil || m.Mine {
		return nil
	}
	return fmt.Errorf("run %s names the servers %s, and is not marked as yours: name its servers with --on", m.ID, m.Cluster.Servers)
}

// shows has sentences go through a display from now on.
func (r *remoteRun) shows(d *display) { r.display = d }

// say says something to a person.
func (r *remoteRun) say(format string, args ...any) {
	if r.display != nil {
		r.display.print(format, args...)
		return
	}
	fmt.Fprintln(stderr, terminal.Sanitize(fmt.Sprintf(format, args...)))
}

// close closes the connection.
func (r *remoteRun) close() {
	if r.sharing != nil {
		r.sharing.Close()
	}
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
