package cli

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestClusterServersFlag names servers as racflow runs resume repeats them.
func TestClusterServersFlag(t *testing.T) {
	on := newRun().Flags().Lookup("on").Value
	if err := on.Set("nats://a,b"); err != nil || on.String() != "nats://a,b" {
		t.Errorf("%q, %v", on, err)
	}
	if err := on.Set(""); err == nil {
		t.Error("it takes no servers")
	}
}

func TestClusterFlags(t *testing.T) {
	file := filepath.Join(folder(t, map[string]string{"worker.creds": ""}), "worker.creds")
	for name, c := range map[string]struct {
		flags   clusterFlags
		env     map[string]string
		want    clusterFlags
		refused string
	}{
		"flags":                  {flags: clusterFlags{servers: "nats://a,b"}, want: clusterFlags{servers: "nats://a,b"}},
		"flags win":              {flags: clusterFlags{servers: "nats://a", credentials: file}, env: map[string]string{serversVariable: "nats://b", credentialsVariable: "nowhere"}, want: clusterFlags{servers: "nats://a", credentials: file}},
		"environment":            {env: map[string]string{serversVariable: "nats://user:secret@b", caVariable: file}, want: clusterFlags{servers: "nats://user:secret@b", ca: file}},
		"nowhere":                {refused: "name the servers"},
		"the user of these":      {flags: clusterFlags{servers: "nats://a:1,b"}, env: map[string]string{serversVariable: "nats://user:se@cret@a:1,b"}, want: clusterFlags{servers: "nats://user:se@cret@a:1,b"}},
		"a password for all":     {flags: clusterFlags{servers: "nats://a,nats://user:secret@b"}, refused: "everybody on this machine could read"},
		"half a certificate":     {flags: clusterFlags{servers: "nats://a", cert: file}, refused: "belong together"},
		"a file that is missing": {flags: clusterFlags{servers: "nats://a", credentials: file + "x"}, refused: "--on-credentials: "},
	} {
		t.Run(name, func(t *testing.T) {
			for _, v := range []string{serversVariable, credentialsVariable, caVariable, certVariable, keyVariable} {
				t.Setenv(v, c.env[v])
			}
			err := c.flags.resolve()
			switch {
			case c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)):
				t.Errorf("%v, want %q", err, c.refused)
			case c.refused != "" && strings.Contains(err.Error(), "secret"):
				t.Errorf("it tells the password: %v", err)
			case c.refused == "" && err != nil:
				t.Error(err)
			case c.refused == "" && c.flags != c.want:
				t.Errorf("%+v, want %+v", c.flags, c.want)
			}
		})
	}
}

// Two processes have two names, though host and process number be the same, as in containers.
func TestProcessName(t *testing.T) {
	form := regexp.MustCompile(`.-[0-9]+-[2-9a-z]{6}$`)
	one, other := processName(), processName()
	if one == other || !form.MatchString(one) || !form.MatchString(other) {
		t.Errorf("%s and %s", one, other)
	}
}
