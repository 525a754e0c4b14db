package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// commandsIn returns the commands in a README's indented blocks.
func commandsIn(t *testing.T, path string) (commands []string) {
	t.Helper()
	for line := range strings.Lines(readFile(t, "", path)) {
		if command, ok := strings.CutPrefix(line, "    "); ok {
			commands = append(commands, strings.TrimSpace(command))
		}
	}
	return commands
}

// TestServeExample types the commands of examples/serve/README.md. The servers listen on free ports,
// and embed without a model.
func TestServeExample(t *testing.T) {
	for _, program := range []string{"curl", "openssl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	dir := t.TempDir()
	for _, folder := range []string{"pipelines", "examples"} {
		if err := os.Symlink(absolute(t, "../../"+folder), filepath.Join(dir, folder)); err != nil {
			t.Fatal(err)
		}
	}
	wants := []struct{ command, in string }{ // expected parts of the commands' output, in order
		{"/answer", `"answer":"delivery_missing_parcel"`},
		{"/retrieve", `{"id":"1","candidates":[{"id":"`},
		{"printf", `"answer":"payment_double_charge"`},
		{"text/event-stream", "event: result\ndata: {"},
		{"/v1/pipelines", `"name":"intent","answers":"labels","ready":true`},
		{"rebuild", `"name":"intent"`},
		{"/readyz", `{"status":"ready"}`},
		{"/metrics", `racflow_http_requests_total{code="200",route="POST /v1/pipelines/{name}/rebuild"} 1`},
		{"/openapi.json", `"/v1/pipelines/{name}/answer"`},
		{"rand", ""}, {"req", ""},
		{"Authorization", `"name":"intent"`},
	}
	var server *server
	address := ""
	for _, command := range commandsIn(t, "../../examples/serve/README.md") {
		if args, ok := strings.CutPrefix(command, "bin/racflow serve "); ok {
			if server != nil {
				server.end(t)
			}
			address = "127.0.0.1:8470"
			if strings.Contains(args, "0.0.0.0:8443") {
				args, address = strings.Replace(args, "0.0.0.0:8443", "0.0.0.0:0", 1), "localhost:8443"
			} else {
				args = "--listen 127.0.0.1:0 " + args
			}
			server = startServer(t, racflow(t, dir, append([]string{"serve", "-var", "embedder=hashing", "-var", "election=soft"}, strings.Fields(args)...)...))
			continue
		}
		if address != "" {
			_, port, _ := net.SplitHostPort(server.address)
			_, shown, _ := net.SplitHostPort(address)
			command = strings.ReplaceAll(command, ":"+shown+"/", ":"+port+"/")
		}
		if len(wants) == 0 || !strings.Contains(command, wants[0].command) {
			t.Fatalf("no output is known of %s", command)
		}
		c := exec.Command("sh", "-c", command)
		c.Dir = dir
		var stderr bytes.Buffer
		c.Stderr = &stderr
		if out, err := c.Output(); err != nil || !strings.Contains(string(out), wants[0].in) {
			t.Errorf("%s\n%v\n%s%s", command, err, out, &stderr)
		}
		wants = wants[1:]
	}
	if len(wants) > 0 {
		t.Errorf("README does not show %v", wants)
	}
	server.end(t)
}

// server is a process of racflow serve.
type server struct {
	*exec.Cmd
	address string
	said    *bufio.Reader
}

// startServer starts a server and waits until it is ready.
func startServer(t *testing.T, c *exec.Cmd) *server {
	t.Helper()
	stderr, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, c)
	s := &server{Cmd: c, said: bufio.NewReader(stderr)}
	readUntil(t, s.said, func(line string) bool {
		if _, address, ok := strings.Cut(line, "://"); ok {
			s.address = strings.TrimSpace(address)
		}
		return line == "ready\n"
	})
	return s
}

// end ends the server as a service manager does.
func (s *server) end(t *testing.T) {
	t.Helper()
	children := childrenOf(s.Process.Pid)
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var rest bytes.Buffer
	_, _ = s.said.WriteTo(&rest)
	if err := s.Wait(); err != nil || strings.Contains(rest.String(), "racflow: ") {
		t.Errorf("%v: %s", err, &rest)
	}
	if len(children) == 0 {
		t.Error("there were no stages")
	}
	for _, child := range children {
		if lives(child) {
			t.Errorf("the stage %d outlives the server", child)
		}
	}
}

const servedFile = `
knowledge "k" {
  source { path = "rows.tsv" }
  embed { use = "hashing" }
  store { use = "local" }
}
pipeline "p" {
  retrieve "r" { from = knowledge.k }
}
`

func TestServeRefuses(t *testing.T) {
	dir := folder(t, map[string]string{
		"good.hcl": servedFile, "wrong.hcl": "pipeline \"p\" {\n  sampel \"s\" {}\n}\n", "rows.tsv": "no columns\n", "tokens": "short\n",
	})
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close() //nolint:errcheck // nothing comes
	for name, test := range map[string]struct {
		args   string
		tokens string
		want   string
	}{
		"no file":            {"", "", "wrong.hcl have pipelines: name one pipeline file"},
		"a mistake":          {"wrong.hcl", "", "wrong.hcl:2"},
		"everybody":          {"--listen 0.0.0.0:0 good.hcl", "", "can be reached from other machines"},
		"half of TLS":        {"--tls-cert tokens good.hcl", "", "give both"},
		"a short token":      {"--tokens tokens good.hcl", "", "tokens: tokens: line 1: a token of 5 characters can be guessed"},
		"one in the setting": {"good.hcl", "hush", "tokens: line 1: a token of 4 characters can be guessed"},
		"no such pipeline":   {"--alias jev-latest=other good.hcl", "", "--alias jev-latest=other: it is another name of a pipeline, and those that are served are "},
		"a size":             {"--body much good.hcl", "", "--body much: a size is a number above 0"},
		"no room":            {"--concurrency 0 good.hcl", "", "--concurrency 0: it is at least 1"},
		"no time":            {"--timeout -1s good.hcl", "", "--timeout -1s: it is more than 0"},
		"an origin":          {"--cors example.com good.hcl", "", `"example.com" is no origin`},
		"a taken port":       {"--listen " + taken.Addr().String() + " good.hcl", "", "address already in use"},
		"rows that are none": {"--listen 127.0.0.1:0 good.hcl", "", "good.hcl:"},
	} {
		t.Run(name, func(t *testing.T) {
			c := racflow(t, dir, append([]string{"serve"}, strings.Fields(test.args)...)...)
			c.Env = append(os.Environ(), tokensVariable+"="+test.tokens)
			out, err := c.CombinedOutput()
			if c.ProcessState.ExitCode() != exitFailed || !strings.Contains(string(out), test.want) || strings.Contains(string(out), "hush") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestDecisionsServed: a pipeline asks another pipeline as a decision model, in both forms: for a
// label, for a label of a tree, for a set.
func TestDecisionsServed(t *testing.T) {
	const served = `
knowledge "k" {
  source {
    path = "rows.tsv"
    FORM
  }
  embed { use = "hashing" }
  store { use = "local" }
}
pipeline "served" {
  retrieve "near" {}
  sample "near" { use = "neighbours" }
  elect "e" { use = "ELECTION" }
}
`
	const asking = `
model "m" {
  name     = "served"
  provider = "PROVIDER"
  base_url = "http://ADDRESS"
  api_key  = ""
}
`
	for name, test := range map[string]struct{ provider, form, election, rows string }{
		"systemone": {"systemone", "", "soft", "text\tlabel\nmy card is lost\tcard\nthe invoice is wrong\tbill\nsend an invoice\tbill\n"},
		"decisions": {"decisions", "", "soft", "text\tlabel\nmy card is lost\tcard\nthe invoice is wrong\tbill\nsend an invoice\tbill\n"},
		"a tree":    {"systemone", `levels = "/"`, "soft", "text\tlabel\nmy card is lost\tcard/lost\nmy card is new\tcard/new\nthe invoice is wrong\tbill/wrong\n"},
		"a set":     {"decisions", `labels = "many"`, "learned", "text\tlabel\nmy card is lost\t[\"card\"]\nthe invoice is wrong\t[\"bill\"]\nthe card and the invoice\t[\"card\",\"bill\"]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			change := strings.NewReplacer("FORM", test.form, "ELECTION", test.election)
			dir := folder(t, map[string]string{"served.hcl": change.Replace(served), "rows.tsv": test.rows, "items.tsv": "id\ttext\n1\tmy card is lost\n"})
			s := startServer(t, racflow(t, dir, "serve", "--listen", "127.0.0.1:0", "--state", "served", "served.hcl"))
			asks := strings.NewReplacer(`sample "near" { use = "neighbours" }`, `sample "m" { model = model.m }`, `pipeline "served"`, `pipeline "asks"`).Replace(change.Replace(served))
			model := strings.NewReplacer("PROVIDER", test.provider, "ADDRESS", s.address).Replace(asking)
			if err := os.WriteFile(filepath.Join(dir, "asks.hcl"), []byte(model+asks), 0o600); err != nil {
				t.Fatal(err)
			}
			code, results, stderr := ran(t, racflow(t, dir, "run", "--input", "items.tsv", "asks.hcl"))
			if code != 0 || !strings.Contains(results, `"answer":"card`) && !strings.Contains(results, `"answer":"[\"card\"]`) {
				t.Errorf("exit code %d\n%s\n%s", code, results, stderr)
			}
			s.end(t)
		})
	}
}

// TestServeChild asks a server over the socket that it names. Then it closes the server's standard
// input, as a program does that ends or is killed, once while a request is in progress.
func TestServeChild(t *testing.T) {
	dir := folder(t, map[string]string{"good.hcl": servedFile, "rows.tsv": "text\tlabel\nred apple\tfruit\n"})
	c := racflow(t, dir, "serve", "--child", "good.hcl")
	c.Env = append(os.Environ(), "RACFLOW_TRUST=all", "TMPDIR="+t.TempDir(), tokensVariable+"=sixteen-characters")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, c)
	var ready child
	if err := json.NewDecoder(out).Decode(&ready); err != nil || !slices.Equal(ready.Pipelines, []string{"p"}) {
		t.Fatalf("%+v, %v", ready, err)
	}
	if info, err := os.Stat(filepath.Dir(ready.Socket)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the socket's folder has the mode %v, %v", info.Mode(), err)
	}
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", ready.Socket)
	}}}
	const url = "http://localhost/v1/pipelines/p/answer"
	reply, err := client.Post(url, "application/json", strings.NewReader(`{"text": "an apple"}`))
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(reply.Body); err != nil || reply.StatusCode != http.StatusOK || !strings.Contains(string(body), `"label":"fruit"`) {
		t.Errorf("%s, %v: %s", reply.Status, err, body)
	}
	_ = reply.Body.Close()
	lines, more := io.Pipe() // a batch that does not end
	cut := make(chan error, 1)
	go func() {
		reply, err := client.Post(url, "application/x-ndjson", lines)
		if err == nil {
			_, err = io.Copy(io.Discard, reply.Body)
			err = errors.Join(err, reply.Body.Close())
		}
		cut <- err
	}()
	if _, err := io.WriteString(more, "{\"text\": \"an apple\"}\n"); err != nil {
		t.Fatal(err)
	}
	children := childrenOf(c.Process.Pid)
	if err := errors.Join(in.Close(), c.Wait()); err != nil {
		t.Error(err)
	}
	if err := <-cut; err == nil {
		t.Error("the batch came to an end")
	}
	if _, err := os.Stat(filepath.Dir(ready.Socket)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket's folder is left: %v", err)
	}
	if len(children) == 0 || slices.ContainsFunc(children, lives) {
		t.Errorf("stages: %v; none may be left", children)
	}
}

// TestServeStdioEnds: a signal ends the Model Context Protocol on standard input in the same way as
// the server.
func TestServeStdioEnds(t *testing.T) {
	dir := folder(t, map[string]string{"good.hcl": servedFile, "rows.tsv": "text\tlabel\nred apple\tfruit\n"})
	c := racflow(t, dir, "serve", "--mcp", "good.hcl")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close() //nolint:errcheck // it is open until the end
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, c)
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`
	if _, err := in.Write([]byte("\ufeff" + hello + "\r\n")); err != nil { // as PowerShell pipes it
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(line, "racflow") {
		t.Fatalf("%q, %v", line, err)
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}
