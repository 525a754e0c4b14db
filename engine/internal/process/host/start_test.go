package host

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/internal/process/confine"
	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

func self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	must.Do(t, err)
	return path
}

// hangs returns a program that prints a line at once, and then does nothing.
func hangs(t *testing.T) *program.Program {
	return scripted(t.TempDir(), "sh -c 'echo waiting for a lock >&2; exec sleep 60'")
}

func TestPluginsThatDoNotStart(t *testing.T) {
	h, _ := newHost(t)
	var err error
	if h.sockets, err = os.MkdirTemp("/tmp", "h"); err != nil { // the path of a socket must be short, whatever TMPDIR is
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(h.sockets) })
	dir := t.TempDir()
	file := func(name, content string, mode os.FileMode) *program.Program {
		path := filepath.Join(dir, program.Prefix+name)
		if content != "" {
			must.Do(t, os.WriteFile(path, []byte(content), mode))
		}
		p, err := program.At(path)
		must.Do(t, err)
		return &p
	}
	plain := file("plain", "echo hi", 0o644)
	other := file("other", "echo hi", 0o755)
	other.Hash = program.FileHash + strings.Repeat("0", 64)
	for name, c := range map[string]struct {
		program *program.Program
		within  time.Duration // start limit; 0: long
		want    []string
	}{
		"no such file":      {program: file("none", "", 0), want: []string{"there is no program " + dir}},
		"not executable":    {program: plain, want: []string{"may not be executed", "chmod +x " + plain.Path}},
		"not a program":     {program: file("foreign", "\x00\x01\x02", 0o755), want: []string{"is not a program for this machine"}},
		"no interpreter":    {program: file("lost", "#!/no/where\n", 0o755), want: []string{"or not the interpreter that it names"}},
		"prints garbage":    {program: acting(t, "garbage"), want: []string{"not a racflow plugin", `"hello, I am a spreadsheet"`, "serve.Plugin"}},
		"prints no line":    {program: acting(t, "endless"), want: []string{"not a racflow plugin", "xxxx"}},
		"exits":             {program: acting(t, "exits"), want: []string{"it ended before it was ready", "exit status 7", "no licence found, token (secret)"}},
		"hangs":             {program: hangs(t), within: 2 * time.Second, want: []string{"not ready within 2s", "waiting for a lock"}},
		"another protocol":  {program: acting(t, "old"), want: []string{"version 0 of racflow's protocol, this racflow version 2", "update racflow"}},
		"tcp":               {program: acting(t, "tcp"), want: []string{"listens on tcp", "unix socket"}},
		"without TLS":       {program: acting(t, "plain"), want: []string{"no certificate", "PLUGIN_CLIENT_CERT"}},
		"another program":   {program: other, want: []string{"has the hash sha256:", ", not " + other.Hash}},
		"no handshake, cat": {program: file("true", "#!/bin/sh\n", 0o755), want: []string{"ended before it was ready", "exit status 0", "it wrote nothing"}},
	} {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			h.limits.start = cmp.Or(c.within, 2*patience)
			_, err := h.Start(t.Context(), Spec{
				Kind: sdk.KindSample, Use: "x/echo", Block: "it", Program: c.program, Secrets: []string{"hunter2secret"},
			})
			if err == nil {
				t.Fatal("it started")
			}
			for _, want := range append(c.want, "sample.it: the plugin ") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, which lacks %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("a secret is in %q", err)
			}
			if took := time.Since(begin); took > patience {
				t.Errorf("it took %v", took)
			}
		})
	}
	if left, err := os.ReadDir(h.temp); err != nil || len(left) > 0 {
		t.Errorf("socket folders are left: %v, %v", left, err)
	}
	start(t, h, Spec{})
	if own, err := os.ReadDir(h.sockets); err != nil || len(own) != 1 || filepath.Join(h.sockets, own[0].Name()) != h.temp {
		t.Errorf("not all is in the folder that the next process removes after a kill: %v, %v", own, err)
	}
	h.Close()
	if left, err := os.ReadDir(h.sockets); err != nil || len(left) > 0 {
		t.Errorf("folders are left: %v, %v", left, err)
	}
}

func TestPinnedProgramStarts(t *testing.T) {
	h, _ := newHost(t)
	plugin := acting(t, "plugin")
	hash, err := plugin.Check()
	must.Do(t, err)
	plugin.Hash = hash
	for range 2 {
		p := start(t, h, Spec{Program: plugin, Kind: sdk.KindSample, Use: "test/echo"})
		if _, _, got := p.Plugin(); got != hash {
			t.Errorf("it has the hash %s, not %s", got, hash)
		}
		wantEcho(t, p, "a")
	}
}

func TestOutputOfAnyKindIsHarmless(t *testing.T) {
	h, log := newHost(t)
	p := start(t, h, Spec{Program: acting(t, "noisy"), Kind: sdk.KindSample, Use: "echo"})
	wantEcho(t, p, "shout")
	waitFor(t, "all output is in the log", func() bool {
		s := log.String()
		return strings.Contains(s, "@message") && strings.Contains(s, "eeee...") && strings.Contains(s, "oooo...") &&
			strings.Contains(s, `level=WARN msg="low on memory" stage=sample.it free=3`)
	})
	if len(log.String()) > 64<<10 {
		t.Errorf("the log has %d bytes", len(log.String()))
	}
	wantEcho(t, p, "a")
}

func TestSecretsStayInside(t *testing.T) {
	secret := `hun"ter<2>` + "\nsecond-line-of-it"
	t.Setenv("OPENAI_API_KEY", "of-another-stage")
	t.Setenv("HTTPS_PROXY", "http://user:password@proxy")
	h, log := newHost(t)
	p := start(t, h, Spec{Config: []byte(`{"token": "hun\"ter<2>\nsecond-line-of-it"}`), Secrets: []string{secret}})
	if _, err := ask(t, p, "tell"); err != nil {
		t.Fatal(err)
	}
	_, err := p.Sample(t.Context(), say("fail"))
	var failed sdk.RowErrors
	if !errors.As(err, &failed) || failed[0].Error() != "busy with (secret)" {
		t.Errorf("got %v", err)
	}
	environment, err := ask(t, p, "environment")
	if err != nil || !strings.Contains(environment, "PATH=") || strings.Contains(environment, "HTTPS_PROXY") {
		t.Errorf("got %q, %v", environment, err)
	}
	waitFor(t, "the log", func() bool { return strings.Contains(log.String(), "my token is") })
	for what, text := range map[string]string{"log": log.String(), "tail": p.out.tail(), "environment": environment} {
		for _, part := range []string{"hun", "ter<2>", "second-line", "of-another-stage"} {
			if strings.Contains(text, part) {
				t.Errorf("%s has %q: %s", what, part, text)
			}
		}
	}
	p = start(t, h, Spec{Network: true})
	if environment, err := ask(t, p, "environment"); err != nil || !strings.Contains(environment, "HTTPS_PROXY=") {
		t.Errorf("a stage that uses the network gets %q, %v", environment, err)
	}
}

func TestNobodyOutlivesAKilledHost(t *testing.T) {
	cmd := exec.Command(self(t), "host")
	stdout, err := cmd.StdoutPipe()
	must.Do(t, err)
	must.Do(t, cmd.Start())
	var pids []int
	var sockets []string
	lines := bufio.NewScanner(stdout)
	for lines.Scan() && lines.Text() != "ready" {
		pid, rest, _ := strings.Cut(lines.Text(), " ")
		n, err := strconv.Atoi(pid)
		must.Do(t, err)
		pids, sockets = append(pids, n), append(sockets, rest)
	}
	if len(pids) != 3 || !alive(pids[0]) {
		t.Fatalf("the host has started %v", pids)
	}
	must.Do(t, cmd.Process.Kill())
	_ = cmd.Wait()
	for i, pid := range pids {
		waitFor(t, "the plugin is gone", func() bool { return !alive(pid) })
		waitFor(t, "its socket folder is gone", func() bool {
			_, err := os.Stat(sockets[i])
			return errors.Is(err, os.ErrNotExist)
		})
	}
}

func TestDescribeWaitsOnlySoLong(t *testing.T) {
	h, _ := newHost(t)
	h.limits.describe = 2 * time.Second
	begin := time.Now()
	_, err := h.Describe(t.Context(), *hangs(t))
	if err == nil || !strings.Contains(err.Error(), "did not answer within 2s") || !strings.Contains(err.Error(), "waiting for a lock") {
		t.Errorf("got %v", err)
	}
	if took := time.Since(begin); took > patience {
		t.Errorf("it took %v", took)
	}
}

// A program is started once to describe itself, for as long as it is the same.
func TestDescribe(t *testing.T) {
	h, _ := newHost(t)
	dir := t.TempDir()
	plugin := scripted(dir, `sh -c 'echo started >> "`+dir+`/starts"; exec "`+self(t)+`" plugin'`)
	plugin.Allow.Write = []string{dir}
	if _, ok := h.Known(*plugin); ok {
		t.Error("known before it was asked")
	}
	for range 2 {
		p, err := h.Describe(t.Context(), *plugin)
		if err != nil || p.Name != "test" || len(p.Stages) != len(testPlugin.Stages) || !p.Stages[0].Arguments[0].Secret {
			t.Fatalf("got %+v, %v", p, err)
		}
	}
	if p, ok := h.Known(*plugin); !ok || p.Version != "0.1.0" {
		t.Errorf("got %+v, %v", p, ok)
	}
	if starts, err := os.ReadFile(dir + "/starts"); err != nil || strings.Count(string(starts), "started") != 1 {
		t.Errorf("it was started %q times, %v", starts, err)
	}
	p := start(t, h, Spec{Kind: sdk.KindSample, Use: "test/echo", Program: plugin})
	wantEcho(t, p, "a")
	scripted(dir, "'"+self(t)+"' plugin")
	if _, ok := h.Known(*plugin); ok {
		t.Error("a program that has changed is known")
	}
}

// A program that is a folder is another one when any file of it has changed: what it said of
// itself is forgotten, and results are of another program.
func TestModulesAreSeen(t *testing.T) {
	h, _ := newHost(t)
	dir := filepath.Join(t.TempDir(), program.Prefix+"test")
	must.Do(t, os.Mkdir(dir, 0o755))
	allow := scripted(dir, "'"+self(t)+"' plugin").Allow
	plugin, err := program.At(dir)
	must.Do(t, err)
	plugin.Allow = allow
	hashes := map[string]bool{}
	for _, module := range []string{"words = 1", "words = 2"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, "words.py"), []byte(module), 0o644))
		if _, ok := h.Known(plugin); ok {
			t.Errorf("with %s it is known before it was asked", module)
		}
		if _, err := h.Describe(t.Context(), plugin); err != nil {
			t.Fatal(err)
		}
		p := start(t, h, Spec{Kind: sdk.KindSample, Use: "test/echo", Program: &plugin})
		_, _, hash := p.Plugin()
		hashes[hash] = strings.HasPrefix(hash, program.TreeHash)
	}
	if len(hashes) != 2 || slices.Contains(slices.Collect(maps.Values(hashes)), false) {
		t.Errorf("the hashes are %v", hashes)
	}
}

// Python writes nothing beside what is locked, also where nothing else keeps it from that.
func TestLockedStaysAsItIs(t *testing.T) {
	h, _ := newHost(t)
	for _, unconfined := range []bool{false, true} {
		plugin := acting(t, "plugin")
		plugin.Origin, plugin.Allow.Unconfined = program.Locked, unconfined
		p := start(t, h, Spec{Kind: sdk.KindSample, Use: "test/echo", Program: plugin})
		environment, err := ask(t, p, "environment")
		if err != nil || !strings.Contains(environment, noBytecode) {
			t.Errorf("unconfined %v: %v, %s", unconfined, err, environment)
		}
	}
}

// A server of this machine that the file allows is where it always is, and no other server.
func TestServerOfThisMachine(t *testing.T) {
	if kernel := confine.Probe(); !kernel.Namespaces && kernel.Landlock < 4 {
		t.Skipf("nothing keeps a plugin from the network here: %+v", kernel)
	}
	h, _ := newHost(t)
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })
	allowed, other := httptest.NewServer(answer), httptest.NewServer(answer)
	t.Cleanup(allowed.Close)
	t.Cleanup(other.Close)
	_, port, _ := net.SplitHostPort(allowed.Listener.Addr().String()) // it is one
	plugin := acting(t, "plugin")
	plugin.Allow.Hosts = []string{"localhost:" + port}
	p := start(t, h, Spec{Kind: sdk.KindSample, Use: "test/echo", Program: plugin})
	for _, address := range []string{allowed.URL, "http://localhost:" + port} {
		if said, err := ask(t, p, "get "+address); err != nil || said != "hello" {
			t.Errorf("%s says %q, %v", address, said, err)
		}
	}
	if said, err := ask(t, p, "get "+other.URL); err == nil {
		t.Errorf("another server says %q", said)
	}
}

// What a confined plugin writes to its folders and starts is bounded.
func TestBounds(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("plugins are confined on Linux alone")
	}
	for _, c := range []struct{ text, why, other string }{
		{"fill 40", "racflow ended it, since its folders hold ", " more than the 32.0 MiB of disk of the plugin test"},
		{"crowd 100", "racflow ended it, since it ran ", "resource temporarily unavailable"}, // for root, and as the kernel has it
	} {
		h, _ := newHost(t)
		h.limits.threads = 90
		plugin := acting(t, "plugin")
		plugin.Allow.Disk = 32 << 20
		p := start(t, h, Spec{Kind: sdk.KindSample, Use: "test/echo", Program: plugin})
		_, err := ask(t, p, c.text)
		if err == nil || !strings.Contains(err.Error(), c.why) && !strings.Contains(err.Error(), c.other) {
			t.Errorf("%s: %v", c.text, err)
		}
	}
}

// A confined plugin reads the certificates that the environment names, wherever they lie.
func TestCertificatesAreReadable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trusted.pem")
	must.Do(t, os.WriteFile(file, []byte("trusted"), 0o600))
	t.Setenv("SSL_CERT_FILE", file)
	h, _ := newHost(t)
	p := start(t, h, Spec{Kind: sdk.KindSample, Use: "test/echo", Program: acting(t, "plugin")})
	if got, err := ask(t, p, "certificates"); err != nil || got != "trusted" {
		t.Errorf("got %q, %v", got, err)
	}
}

// A config is checked by the plugin's own process, which opens nothing and whose
// errors tell no secret.
func TestValidate(t *testing.T) {
	h, _ := newHost(t)
	plugin := scripted(t.TempDir(), "env GORACE=atexit_sleep_ms=0 '"+h.self+"' plugin")
	h.Secrets().Add("hush-hush")
	validate := func(config string) error {
		return h.Validate(t.Context(), *plugin, sdk.KindSample, "echo", []byte(config))
	}
	if err := validate(`{"k": 99, "token": "hush-hush"}`); err != nil {
		t.Error(err)
	}
	err := validate(`{"delay": "2h", "token": "hush-hush"}`)
	all := sdk.ArgumentErrors(err)
	if len(all) != 1 || all[0].Argument != "delay" || !strings.Contains(all[0].Error(), "so long for (secret)") {
		t.Errorf("error %v", err)
	}
	if err := h.Validate(t.Context(), program.Program{Path: "/nonexistent"}, sdk.KindSample, "echo", nil); err == nil || !strings.Contains(err.Error(), "did not start") {
		t.Errorf("error %v", err)
	}
}
