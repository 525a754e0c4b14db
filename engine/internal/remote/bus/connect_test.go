package bus

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/racflow/racflow/engine/internal/remote/natstest"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

func TestPasses(t *testing.T) {
	t.Parallel()
	api := func(status, code int, text string) error {
		return fmt.Errorf("nats: %w", &jetstream.APIError{Code: status, ErrorCode: jetstream.ErrorCode(code), Description: text})
	}
	for _, c := range []struct {
		err  error
		want bool
	}{
		{context.DeadlineExceeded, true},
		{nats.ErrTimeout, true},
		{nats.ErrNoResponders, true},
		{jetstream.ErrNoStreamResponse, true},
		{nats.ErrReconnectBufExceeded, true},
		{jetstream.ErrNoHeartbeat, true},
		{errLost, true},
		{api(503, 10008, "JetStream system temporarily unavailable"), true},
		{api(400, 10002, "resource limits exceeded for account"), true},
		{api(503, 10023, "insufficient resources"), true},
		{api(500, 10047, "insufficient storage resources available"), true},
		{api(503, 10077, "maximum bytes exceeded"), true},
		{api(503, 10077, "maximum messages per subject exceeded"), false},
		{api(400, 10005, "no suitable peers for placement, peer offline"), true},
		{api(400, 10005, "no suitable peers for placement"), false},
		{api(400, 10071, "wrong last sequence: 3"), false},
		{api(409, 10158, "duplicate message id is in process"), true},
		{api(404, 10037, "no message found"), false},
		{jetstream.ErrStreamNotFound, false},
		{nats.ErrMaxPayload, false},
		{nats.ErrConnectionClosed, false},
		{nats.ErrPermissionViolation, false},
		{errors.New("another"), false},
	} {
		if got := passes(c.err); got != c.want {
			t.Errorf("%v passes: %v", c.err, got)
		}
	}
}

func TestServers(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]string{
		"nats://a:4223,b,c:1":         "nats://a:4223, nats://b:4222, nats://c:1",
		"a":                           "nats://a:4222",
		"tls://u:p@a, b":              "tls://a:4222, tls://b:4222",
		"nats://[::1],nats://[::2]:5": "nats://[::1]:4222, nats://[::2]:5",
	} {
		urls := must.Get(servers(list))(t)
		if got := hosts(urls); got != want {
			t.Errorf("%s: %s", list, got)
		}
		for _, u := range urls[1:] {
			if u.User.String() != urls[0].User.String() {
				t.Errorf("%s: the user is not for all", list)
			}
		}
	}
}

// authority signs certificates and keeps them in files.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.cert, a.key = a.sign("ca", func(c *x509.Certificate) {
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
	})
	return a
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name+".pem") }

// sign leaves NAME.pem and NAME-key.pem.
func (a *authority) sign(name string, change func(*x509.Certificate)) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(a.t)
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	change(template)
	parent, signer := template, key
	if a.cert != nil {
		parent, signer = a.cert, a.key
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer))(a.t)
	private := must.Get(x509.MarshalECPrivateKey(key))(a.t)
	for path, block := range map[string]*pem.Block{a.file(name): {Type: "CERTIFICATE", Bytes: der}, a.file(name + "-key"): {Type: "EC PRIVATE KEY", Bytes: private}} {
		must.Do(a.t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
	}
	return must.Get(x509.ParseCertificate(der))(a.t), key
}

func (a *authority) config(name string) *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	pair := must.Get(tls.LoadX509KeyPair(a.file(name), a.file(name+"-key")))(a.t)
	return &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}
}

func local(c *x509.Certificate)     { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)} }
func elsewhere(c *x509.Certificate) { c.DNSNames = []string{"elsewhere.example"} }

// What does not pass by itself is refused at once, with what to do; what may pass, after a bounded time, with the servers' names.
func TestConnectErrors(t *testing.T) {
	t.Parallel()
	ours, others := newAuthority(t), newAuthority(t)
	ours.sign("server", local)
	ours.sign("stranger", elsewhere)
	ours.sign("client", local)
	others.sign("client", local)
	secure := natstest.Start(t, 1, func(_ int, o *server.Options) { o.TLSConfig, o.TLSTimeout = ours.config("server"), 5 })
	misnamed := natstest.Start(t, 1, func(_ int, o *server.Options) { o.TLSConfig, o.TLSTimeout = ours.config("stranger"), 5 })
	plain := natstest.Start(t, 1)
	users := natstest.Start(t, 1, func(_ int, o *server.Options) {
		none := server.NewAccount("SYS") // the system account keeps no streams
		o.SystemAccount = "SYS"
		o.Accounts = []*server.Account{none}
		o.Users = []*server.User{{Username: "a", Password: "right"}, {Username: "none", Password: "right", Account: none},
			{Username: "mute", Password: "right", Permissions: &server.Permissions{Publish: &server.SubjectPermission{Allow: []string{"x"}}}},
			{Username: "deaf", Password: "right", Permissions: &server.Permissions{Subscribe: &server.SubjectPermission{Allow: []string{"x"}}}}}
	})
	off := natstest.Start(t, 1, func(_ int, o *server.Options) { o.JetStream = false })
	old := fakeServer(t, "2.8.4")
	tlsURL := func(s *natstest.Servers) string { return strings.Replace(s.URL(), "nats://", "tls://", 1) }
	as := func(user string) string { return "nats://" + user + "@" + users.Host(0) }
	seed, _ := newKey(t)
	known, public := newKey(t)
	keys := natstest.Start(t, 1, func(_ int, o *server.Options) { o.Nkeys = []*server.NkeyUser{{Nkey: public}} })
	all := func(name string) Options {
		return Options{CA: ours.file("ca"), Certificate: ours.file(name), Key: ours.file(name + "-key")}
	}
	for name, c := range map[string]struct {
		o    Options
		url  string
		want []string
		slow bool // may be tried again for a while
	}{
		"all is right":               {all("client"), tlsURL(secure), nil, false},
		"TLS as the server says":     {all("client"), secure.URL(), nil, false},
		"unknown authority":          {Options{CA: others.file("ca"), Certificate: ours.file("client"), Key: ours.file("client-key")}, tlsURL(secure), []string{"unknown authority", "compare the certificates"}, false},
		"other host":                 {all("client"), tlsURL(misnamed), []string{"127.0.0.1", "compare the certificates"}, false},
		"no certificate":             {Options{CA: ours.file("ca")}, tlsURL(secure), []string{"compare the certificates"}, false},
		"foreign certificate":        {Options{CA: ours.file("ca"), Certificate: others.file("client"), Key: others.file("client-key")}, tlsURL(secure), []string{"compare the certificates"}, false},
		"no TLS there":               {all("client"), tlsURL(plain), []string{"write nats://"}, false},
		"certificate without a key":  {Options{Certificate: ours.file("client")}, tlsURL(secure), []string{"name both files"}, false},
		"no such file":               {Options{CA: "/none/ca.pem"}, tlsURL(secure), []string{"/none/ca.pem"}, false},
		"a user":                     {Options{}, as("a:right"), nil, false},
		"wrong password":             {Options{}, as("a:wrong"), []string{"check the credentials"}, false},
		"unknown user":               {Options{}, as("b:right"), []string{"check the credentials"}, false},
		"unknown key":                {Options{Credentials: seed}, "nats://" + users.Host(0), []string{"check the credentials"}, false},
		"unknown key where keys are": {Options{Credentials: seed}, keys.URL(), []string{"check the credentials"}, false},
		"a key":                      {Options{Credentials: known}, keys.URL(), nil, false},
		"no credentials":             {Options{Credentials: ours.file("ca")}, "nats://" + users.Host(0), []string{"neither a .creds file nor the seed"}, false},
		"account without JetStream":  {Options{}, as("none:right"), []string{"enable it for the account"}, false},
		"may not ask":                {Options{}, as("mute:right"), []string{"Permissions Violation for Publish", "permissions do not allow"}, false},
		"may not hear":               {Options{}, as("deaf:right"), []string{"Permissions Violation for Subscription", "permissions do not allow"}, false},
		"JetStream is off":           {Options{}, off.URL(), []string{"-js"}, true},
		"too old":                    {Options{}, old, []string{"2.8.4", "needs " + oldestVersion}, false},
		"nobody there":               {Options{}, "nats://127.0.0.1:1,127.0.0.1:2", []string{"127.0.0.1:1", "127.0.0.1:2", "start the servers"}, true},
		"no servers":                 {Options{}, " , ", []string{"no servers are named"}, false},
		"no address":                 {Options{}, "nats://a:secret@:4222", []string{"cannot be read"}, false},
		"another scheme":             {Options{}, "http://a", []string{"write nats://a"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limit := patience
			if c.slow {
				limit = 2 * time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			c.o.Servers = c.url
			begin := time.Now()
			conn, err := Connect(ctx, c.o)
			if took := time.Since(begin); !c.slow && took > connectTimeout {
				t.Errorf("it took %s", took)
			}
			if err == nil {
				conn.Close()
			}
			if (err == nil) != (c.want == nil) {
				t.Fatalf("error %v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q lacks %q", err, want)
				}
			}
			if err != nil && (strings.Contains(err.Error(), "right") || strings.Contains(err.Error(), "wrong") || strings.Contains(err.Error(), "secret")) {
				t.Errorf("%q shows a password", err)
			}
		})
	}
}

// A first connection that takes its time says so, and when it is over.
func TestConnectSays(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 1)
	servers.Stop(0)
	var said []string
	c, err := Connect(t.Context(), Options{Servers: servers.URL(), Waiting: func(why error) {
		said = append(said, fmt.Sprint(why))
		if why != nil {
			servers.Start(0)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if len(said) != 2 || !strings.Contains(said[0], servers.Host(0)+": cannot be used yet") || said[1] != "<nil>" {
		t.Errorf("%q", said)
	}
}

// newKey is a user's key: the file of its seed, and what a server knows of it.
func newKey(t *testing.T) (path, public string) {
	pair := must.Get(nkeys.CreateUser())(t)
	path = filepath.Join(t.TempDir(), "seed")
	must.Do(t, os.WriteFile(path, must.Get(pair.Seed())(t), 0o600))
	return path, must.Get(pair.PublicKey())(t)
}

// fakeServer says that it is a server of some version.
func fakeServer(t *testing.T, version string) string {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				fmt.Fprintf(c, "INFO {\"server_id\":\"x\",\"version\":%q,\"headers\":true,\"max_payload\":1048576,\"proto\":1}\r\n", version)
				for lines := bufio.NewScanner(c); lines.Scan(); {
					if lines.Text() == "PING" {
						fmt.Fprint(c, "PONG\r\n")
					}
				}
			}()
		}
	}()
	return "nats://" + l.Addr().String()
}

// permissions are the rights of a role in examples/cluster/accounts.conf.
func permissions(t *testing.T, role Role) *server.Permissions {
	text := string(must.Get(os.ReadFile("../../../../examples/cluster/accounts.conf"))(t))
	keys := map[Role]string{}
	for variable, of := range map[string]Role{"$RACFLOW_CALLER": Caller, "$RACFLOW_WORKER": Worker, "$NATS_ADMIN": ""} {
		_, keys[of] = newKey(t)
		text = strings.ReplaceAll(text, variable+" ", keys[of]+" ")
		text = strings.ReplaceAll(text, variable+",", keys[of]+",")
	}
	path := filepath.Join(t.TempDir(), "accounts.conf")
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	for _, user := range must.Get(server.ProcessConfigFile(path))(t).Nkeys {
		if user.Nkey == keys[role] {
			return user.Permissions
		}
	}
	t.Fatalf("%s has no rights", role)
	return nil
}

// restricted is a server whose users caller and worker have the rights of the example, and no more.
func restricted(t *testing.T) *natstest.Servers {
	return natstest.Start(t, 1, func(_ int, o *server.Options) {
		for _, role := range []Role{Caller, Worker} {
			o.Users = append(o.Users, &server.User{Username: string(role), Password: "pw", Permissions: permissions(t, role)})
		}
	})
}

func as(role Role, s *natstest.Servers) string {
	return "nats://" + string(role) + ":pw@" + strings.TrimPrefix(s.URL(), "nats://")
}

// A whole run works with the permissions that are listed.
func TestPermissionsSuffice(t *testing.T) {
	t.Parallel()
	s := restricted(t)
	ctx := bounded(t)
	c, w := connect(t, as(Caller, s), "c"), connect(t, as(Worker, s), "w")
	ids := w.Watch(ctx)
	data := strings.Repeat("file", 1<<18)
	sum := sha256.Sum256([]byte(data))
	digest := hex.EncodeToString(sum[:])
	mine := create(t, c, Config{ID: "a1", Definition: bytes.Repeat([]byte("d"), 2<<20)})
	must.Do(t, c.PutFile(ctx, digest, strings.NewReader(data)))
	theirs := must.Get(w.Open(ctx, <-ids))(t)
	if runs := must.Get(w.Runs(ctx))(t); len(runs) != 1 {
		t.Error(runs)
	}
	var got bytes.Buffer
	if err := w.GetFile(ctx, digest, &got); err != nil || got.String() != data {
		t.Error(got.Len(), err)
	}
	big := bytes.Repeat([]byte("x"), 2<<20)
	for seq := range 2 {
		must.Do(t, mine.Publish(ctx, Position{1, seq + 1}, big))
	}
	b := must.Get(theirs.Take(ctx))(t)
	must.Do(t, b.Return())
	b = must.Get(theirs.Take(ctx))(t)
	must.Get(theirs.Answer(ctx, b.Position, big))(t)
	must.Do(t, b.Done(ctx))
	if result := results(t, mine, 0, 1)[0]; !bytes.Equal(result.Data, big) {
		t.Error("another answer")
	}
	must.Get(theirs.KeepAnswer(ctx, "k", big))(t)
	must.Get(theirs.KeepAnswer(ctx, "k", []byte("late")))(t)
	for _, key := range []string{"worker.w", "keeper", "lease.w"} {
		must.Get(theirs.Put(ctx, key, []byte("x")))(t)
	}
	if all := must.Get(theirs.All(ctx, ""))(t); len(all) != 3 {
		t.Error(all)
	}
	must.Get(mine.Put(ctx, "end", nil))(t)
	for asker, server := range map[*Run]*Run{mine: theirs, theirs: mine} {
		stop := must.Get(server.Serve("q", func([]byte) []byte { return []byte("yes") }))(t)
		for range 3 {
			if answer := must.Get(asker.Ask(ctx, "q", nil))(t); string(answer) != "yes" {
				t.Error(answer)
			}
		}
		stop()
		heard := make(chan []byte, 1)
		stop = must.Get(server.Hear("news", func(data []byte) { heard <- data }))(t)
		must.Do(t, asker.Tell("news", []byte("x")))
		<-heard
		stop()
	}
	must.Do(t, c.Sweep(ctx, time.Now()))
	if err := mine.Drop(ctx); err != nil {
		t.Error(err)
	}
	if err := c.RemoveFile(ctx, digest); err != nil {
		t.Error(err)
	}
	if err := mine.Remove(ctx); err != nil {
		t.Error(err)
	}
}

// What a worker's key must not do is refused at once, and says so.
func TestPermissionsAreLeast(t *testing.T) {
	t.Parallel()
	s := restricted(t)
	ctx := bounded(t)
	c, w := connect(t, as(Caller, s), "c"), connect(t, as(Worker, s), "w")
	mine := create(t, c, Config{ID: "a1"})
	theirs := must.Get(w.Open(ctx, "a1"))(t)
	must.Get(mine.Put(ctx, "end", []byte("x")))(t)
	stream := must.Get(w.js.Stream(ctx, itemsStream("a1")))(t)
	for name, f := range map[string]func() error{
		"create":   func() error { _, err := w.Create(ctx, Config{ID: "b1"}); return err },
		"remove":   func() error { return theirs.Remove(ctx) },
		"publish":  func() error { return theirs.Publish(ctx, Position{1, 1}, nil) },
		"drop":     func() error { return theirs.Drop(ctx) },
		"end":      func() error { _, err := theirs.Put(ctx, "end", nil); return err },
		"delete":   func() error { return theirs.Delete(ctx, "end") },
		"put file": func() error { return w.PutFile(ctx, strings.Repeat("0", 64), strings.NewReader("")) },
		"define": func() error {
			_, err := w.publish(ctx, resultsStream("a1"), nats.NewMsg(subject("a1", "definition")))
			return err
		},
		"queue": func() error {
			return w.try(ctx, "", func(ctx context.Context) error {
				_, err := stream.UpdateConsumer(ctx, jetstream.ConsumerConfig{Durable: consumer, AckPolicy: jetstream.AckExplicitPolicy, FilterSubject: subject("a1", "items", ">")})
				return err
			})
		},
	} {
		err := f()
		if !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(err.Error(), "permissions do not allow") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Runs whose creation or removal was interrupted are found and can be removed; nobody sees them.
func TestUnfinished(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1)
	ctx := bounded(t)
	c := connect(t, s.URL(), "c")
	create(t, c, Config{ID: "a1"})
	created, removed := create(t, c, Config{ID: "b1"}), create(t, c, Config{ID: "c1"})
	must.Do(t, c.list(ctx, created.id, unfinished+"x"))
	must.Do(t, c.list(ctx, removed.id, unfinished))
	must.Do(t, c.js.DeleteStream(ctx, itemsStream(removed.id)))
	if ids := must.Get(c.Runs(ctx))(t); !slices.Equal(ids, []string{"a1"}) {
		t.Error(ids)
	}
	if _, err := c.Open(ctx, "b1"); !errors.Is(err, ErrNoRun) {
		t.Error(err)
	}
	if _, err := c.Create(ctx, Config{ID: "b1"}); !errors.Is(err, ErrExists) {
		t.Error(err)
	}
	must.Do(t, c.Sweep(ctx, time.Now().Add(-time.Hour)))
	if left := must.Get(c.runs(ctx, false))(t); len(left) != 2 || indexed(left[0]) != "b1" || indexed(left[1]) != "c1" {
		t.Errorf("%v", left)
	}
	must.Do(t, c.Sweep(ctx, time.Now().Add(time.Hour)))
	if left := must.Get(c.runs(ctx, false))(t); len(left) != 0 {
		t.Errorf("%v", left)
	}
	for name := range c.js.StreamNames(ctx).Name() {
		if strings.Contains(name, "b1") || strings.Contains(name, "c1") {
			t.Errorf("stream %s stays", name)
		}
	}
	must.Get(c.Open(ctx, "a1"))(t)
}
