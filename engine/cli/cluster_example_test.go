//go:build linux

package cli

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	natsd "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/racflow/racflow/engine/internal/remote/bus"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

const clusterExample = "../../examples/cluster"

// exampleServers are servers with the configuration of examples/cluster, its certificates, and users of
// their own.
type exampleServers struct {
	dir  string // certificates, and the seeds of the users: caller.nk, worker.nk, admin.nk
	env  []string
	urls string
	all  []*natsServer
}

// quoted is a path as NATS reads it from the environment: there may be spaces in it.
func quoted(path string) string { return `"` + path + `"` }

// newExample makes the users and what the configuration takes from the environment; nothing is started.
func newExample(t *testing.T) *exampleServers {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("there is no openssl")
	}
	e := &exampleServers{dir: t.TempDir()}
	c := exec.Command(absolute(t, clusterExample+"/certificates.sh"), "IP:127.0.0.1")
	c.Dir = e.dir
	must(t, c)
	for name, variable := range map[string]string{"caller": "RACFLOW_CALLER", "worker": "RACFLOW_WORKER", "admin": "NATS_ADMIN"} {
		e.env = append(e.env, variable+"="+newSeed(t, e.dir, name))
	}
	e.env = append(e.env, "NATS_CERT="+quoted(e.file("127.0.0.1.pem")), "NATS_KEY="+quoted(e.file("127.0.0.1-key.pem")), "NATS_CA="+quoted(e.file("ca.pem")), "NATS_DISK=1GB")
	return e
}

// newSeed makes a user's key, writes its seed to NAME.nk, and returns the public half.
func newSeed(t *testing.T, dir, name string) string {
	t.Helper()
	user, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := user.Seed()
	public, failed := user.PublicKey()
	if err := errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	write(t, dir, name+".nk", string(seed))
	return public
}

func (e *exampleServers) file(name string) string { return filepath.Join(e.dir, name) }

// start starts so many servers.
func (e *exampleServers) start(t *testing.T, n int) {
	t.Helper()
	var routes, urls []string
	for range n {
		routes = append(routes, "nats://"+freeAddress(t))
	}
	for i := range n {
		s := &natsServer{t: t, dir: t.TempDir(), address: freeAddress(t), file: filepath.Join(clusterExample, "nats.conf")}
		s.env = append(slices.Clone(e.env), fmt.Sprintf("NATS_NAME=n%d", i+1), "NATS_LISTEN="+s.address, "NATS_CLUSTER_LISTEN="+strings.TrimPrefix(routes[i], "nats://"),
			`NATS_ROUTES=["`+strings.Join(routes, `", "`)+`"]`, "NATS_STORE="+quoted(filepath.Join(s.dir, "store")))
		s.start()
		e.all, urls = append(e.all, s), append(urls, "tls://"+s.address)
	}
	e.urls = strings.Join(urls, ",")
	for _, s := range e.all {
		s.listens()
	}
}

// as are the flags of a user.
func (e *exampleServers) as(user string) []string {
	return []string{"--on-credentials", e.file(user + ".nk"), "--on-ca", e.file("ca.pem")}
}

// bus connects a user.
func (e *exampleServers) bus(t *testing.T, user string) *bus.Conn {
	t.Helper()
	var err error
	for start := time.Now(); time.Since(start) < slow; time.Sleep(100 * time.Millisecond) {
		var c *bus.Conn
		if c, err = bus.Connect(t.Context(), bus.Options{Servers: e.urls, Name: user, Credentials: e.file(user + ".nk"), CA: e.file("ca.pem")}); err == nil {
			t.Cleanup(c.Close)
			return c
		}
	}
	t.Fatal(err)
	return nil
}

// raw connects a user who does what racflow does not.
func (e *exampleServers) raw(t *testing.T, user string) *nats.Conn {
	t.Helper()
	seed, err := nats.NkeyOptionFromSeed(e.file(user + ".nk"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := nats.Connect(e.urls, seed, nats.RootCAs(e.file("ca.pem")), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestClusterExampleRights: what workers may publish in examples/cluster/accounts.conf is exported to them, and nothing else. Tests of
// package bus show that the rights suffice.
func TestClusterExampleRights(t *testing.T) {
	e := newExample(t)
	for _, v := range append(e.env, "NATS_NAME=n1", "NATS_LISTEN=127.0.0.1:4222", "NATS_CLUSTER_LISTEN=127.0.0.1:6222", `NATS_ROUTES=["nats://127.0.0.1:6222"]`, "NATS_STORE="+quoted(t.TempDir())) {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	options, err := natsd.ProcessConfigFile(filepath.Join(clusterExample, "nats.conf"))
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(options.Nkeys, func(u *natsd.NkeyUser) bool { return u.Account.Name == "RACFLOW_WORKERS" })
	if i < 0 {
		t.Fatal("the account of workers has no user")
	}
	allowed := options.Nkeys[i].Permissions.Publish.Allow
	content := readFile(t, clusterExample, "accounts.conf")
	for _, subject := range allowed {
		if !strings.Contains(content, fmt.Sprintf("{ service: %q, accounts: [RACFLOW_WORKERS]", subject)) ||
			!strings.Contains(content, fmt.Sprintf("{ service: { account: RACFLOW, subject: %q } }", subject)) {
			t.Errorf("%s is not exported and imported", subject)
		}
	}
	if n := 2*len(allowed) + 2; strings.Count(content, "      { service: ")+strings.Count(content, "      { stream: ") != n {
		t.Errorf("there are other exports or imports than %d", n)
	}
}

// TestClusterExampleRun takes items through a pipeline with the rights of examples/cluster. Tests of package bus show what is
// refused without them.
func TestClusterExampleRun(t *testing.T) {
	leaveTo(t, "cluster", "packages caller and worker show it in one process")
	e := newExample(t)
	e.start(t, 3)
	e.bus(t, "caller").Close() // they serve
	dir := clusterFolder(t, 300)
	model := modelserver.Serve(t, modelserver.Options{Answer: labelOf})
	paid := []string{"-var", "url=" + model.URL, "-var", "concurrency=16"}
	ends(t, clusterRun(t, dir, "local", "", paid...), slow)
	for range 2 {
		startWorker(t, e.urls, e.as("worker")...)
	}
	said := ends(t, clusterRun(t, dir, "remote", e.urls, append(e.as("caller"), paid...)...), slow)
	sameOutput(t, dir, "local", "remote")
	if strings.Contains(strings.ToLower(said), "permission") {
		t.Errorf("something was refused\n%s", said)
	}
}

// TestClusterExampleAttacks does with a worker's key what its owner must not be able to do, on the servers of
// examples/cluster.
func TestClusterExampleAttacks(t *testing.T) {
	leaveTo(t, "cluster", "packages caller and worker show it in one process")
	e := newExample(t)
	e.start(t, 3)
	ctx := t.Context()
	caller := e.bus(t, "caller")
	run, err := caller.Create(ctx, bus.Config{ID: "victim", Definition: []byte("the definition"), Replicas: 1, Claim: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"caller", "end", "worker.other"} {
		if _, err := run.Put(ctx, key, []byte("before")); err != nil {
			t.Fatal(err)
		}
	}
	err = run.Publish(ctx, bus.Position{Part: 1, Seq: 1}, []byte("a batch"))
	_, answered := run.Answer(ctx, bus.Position{Part: 1, Seq: 2}, []byte("a result"))
	_, kept := run.KeepAnswer(ctx, "known", []byte("an answer"))
	if err := errors.Join(err, answered, kept); err != nil {
		t.Fatal(err)
	}
	owner, err := jetstream.New(e.raw(t, "caller"))
	if err != nil {
		t.Fatal(err)
	}
	streams := []string{"KV_racflow_runs", "KV_racflow_victim", "KV_racflow_victim_answers", "racflow_victim_items", "racflow_victim_results"}
	state := func() map[string]any {
		all := map[string]any{}
		for _, name := range streams {
			s, err := owner.Stream(ctx, name)
			if err != nil {
				all[name] = err.Error()
				continue
			}
			info, err := s.Info(ctx, jetstream.WithSubjectFilter(">"))
			if err != nil {
				t.Fatal(err)
			}
			for subject := range info.State.Subjects {
				m, err := s.GetLastMsgForSubject(ctx, subject)
				if err != nil {
					t.Fatal(err)
				}
				all[subject] = string(m.Data)
			}
		}
		return all
	}
	before := state()

	attacker := e.raw(t, "worker")
	const readers = "$JS.API.CONSUMER.CREATE.KV_racflow_victim."
	attacks := map[string]struct {
		subject, reply, data string
		header               nats.Header
	}{
		"delete":             {"$JS.API.STREAM.DELETE.racflow_victim_results", "", "", nil},
		"purge":              {"$JS.API.STREAM.PURGE.racflow_victim_items", "", "", nil},
		"delete a message":   {"$JS.API.STREAM.MSG.DELETE.racflow_victim_results", "", `{"seq":1}`, nil},
		"create":             {"$JS.API.STREAM.CREATE.mine", "", `{"name":"mine","subjects":["mine"]}`, nil},
		"update":             {"$JS.API.STREAM.UPDATE.racflow_victim_items", "", `{"name":"racflow_victim_items","max_msgs":1}`, nil},
		"delete the queue":   {"$JS.API.CONSUMER.DELETE.racflow_victim_items.workers", "", "", nil},
		"publish a batch":    {"racflow.victim.items.1.3", "", "forged", nil},
		"another definition": {"racflow.victim.definition", "", "forged", nil},
		"another result":     {"racflow.victim.results.1.2", "", "forged", nil},
		"another answer":     {"$KV.racflow_victim_answers.answer.known", "", "forged", nil},
		"end the run":        {"$KV.racflow_victim.end", "", "forged", nil},
		"be the caller":      {"$KV.racflow_victim.caller", "", "forged", nil},
		"unlist the run":     {"$KV.racflow_runs.victim", "", "", nats.Header{"KV-Operation": {"DEL"}}},
		"clear all keys":     {"$KV.racflow_victim.worker.other", "", "before", nats.Header{"Nats-Rollup": {"all"}}},
		"clear the index":    {"$KV.racflow_runs.worker.x", "", "", nats.Header{"Nats-Rollup": {"all"}}},
		"clear the answers":  {"$KV.racflow_victim_answers.answer.known", "", "", nats.Header{"Nats-Rollup": {"all"}}},
		"clear results":      {"racflow.victim.results.1.9", "", "", nats.Header{"Nats-Rollup": {"all"}}},
		"delete by a reply": {"$JS.API.CONSUMER.MSG.NEXT.racflow_victim_items.workers", "$JS.API.STREAM.DELETE.racflow_victim_items",
			`{"batch":1,"no_wait":true}`, nil},
		"a batch by a reply":  {"$JS.API.STREAM.MSG.GET.racflow_victim_results", "racflow.victim.items.1.4", `{"seq":1}`, nil},
		"a key by a reply":    {"$JS.API.STREAM.INFO.racflow_victim_items", "$KV.racflow_victim.end", "", nil},
		"a batch by a reader": {readers + "evil.$KV.racflow_victim.>", "", reader("evil", "racflow.victim.items.1.5"), nil},
		"delete by a reader":  {readers + "worse.$KV.racflow_victim.>", "", reader("worse", "$JS.API.STREAM.DELETE.racflow_victim_results"), nil},
		"another queue":       {"$JS.API.CONSUMER.CREATE.racflow_victim_items.workers.$KV.x", "", reader("workers", ""), nil},
		"the system":          {"$SYS.REQ.SERVER.PING", "", "", nil},
	}
	for name, attack := range attacks {
		m := &nats.Msg{Subject: attack.subject, Reply: attack.reply, Data: []byte(attack.data), Header: attack.header}
		if err := errors.Join(attacker.PublishMsg(m), attacker.Flush()); err != nil {
			t.Fatal(err)
		}
		// Whatever an attack begins ends at the same server, before it answers this.
		if _, err := attacker.RequestWithContext(ctx, "$JS.API.STREAM.INFO.racflow_victim_items", nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(before, state()); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
			before = state()
		}
	}
	for _, subject := range []string{"racflow.victim.results.>", "$KV.>", "$JS.>", "$SYS.>", "_INBOX_other.>", ">"} {
		_, err := attacker.SubscribeSync(subject)
		if err := errors.Join(err, attacker.Flush()); err != nil {
			t.Fatal(err)
		}
		if err := attacker.LastError(); !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(err.Error(), fmt.Sprintf("%q", subject)) {
			t.Errorf("it hears %s: %v", subject, err)
		}
	}
	// What it may do.
	worker := e.bus(t, "worker")
	mine, err := worker.Open(ctx, "victim")
	if err != nil {
		t.Fatal(err)
	}
	if err := mine.Remove(ctx); err == nil {
		t.Error("it removes the run")
	}
	if _, err := worker.Create(ctx, bus.Config{ID: "mine", Definition: []byte("x")}); err == nil || !strings.Contains(err.Error(), "permissions") {
		t.Errorf("it begins a run: %v", err)
	}
	batch, err := mine.Take(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if first, err := mine.Answer(ctx, batch.Position, []byte("wrong")); err != nil || !first {
		t.Errorf("%v, %v", first, err)
	}
	if err := batch.Done(ctx); err != nil {
		t.Error(err)
	}
}

// reader is a request for a consumer that sends what it reads to a subject.
func reader(name, to string) string {
	return fmt.Sprintf(`{"stream_name":"KV_racflow_victim","config":{"name":%q,"ack_policy":"none","deliver_policy":"all","deliver_subject":%q,"filter_subject":"$KV.racflow_victim.>"}}`, name, to)
}
