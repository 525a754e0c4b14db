package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/cluster/bus"
	"github.com/racflow/racflow/engine/cluster/definition"
)

// Variables of the environment that say what the flags of clusterFlags do not. Servers may name a user and a password
// here, and only here: what stands in a command line, every user of the machine can read.
const (
	serversVariable     = "RACFLOW_NATS_SERVERS"
	credentialsVariable = "RACFLOW_NATS_CREDENTIALS" //nolint:gosec // a name
	caVariable          = "RACFLOW_NATS_CA"
	certVariable        = "RACFLOW_NATS_CERT"
	keyVariable         = "RACFLOW_NATS_KEY"
)

// clusterFlags say at which NATS servers a verb works, and who it is there.
type clusterFlags struct {
	servers, credentials, ca, cert, key string
}

// register adds the flags to a verb. what says what happens at the servers, such as "answer on workers
// there".
func (f *clusterFlags) register(c *cobra.Command, what string) {
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
func (f *clusterFlags) connect(ctx context.Context, say func(format string, args ...any)) (*bus.Conn, error) {
	if err := f.resolve(); err != nil {
		return nil, err
	}
	log, err := newLog()
	if err != nil {
		return nil, err
	}
	return bus.Connect(ctx, bus.Options{
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
	return fmt.Sprintf("%s-%d-%s", host, os.Getpid(), definition.NewID()[:6])
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
