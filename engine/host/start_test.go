package host

import (
	"bufio"
	"cmp"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/program"
	"github.com/racflow/racflow/sdk"
)

func self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// hangs is a program that says something at once, on a busy machine too, and
// nothing else.
var hangs = []string{"sh", "-c", "echo waiting for a lock >&2; exec sleep 60"}

func TestPluginsThatDoNotStart(t *testing.T) {
	h, _ := newHost(t)
	h.sockets = t.TempDir()
	dir := t.TempDir()
	file := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plain := file("plain", "echo hi", 0o644)
	foreign := file("foreign", "\x00\x01\x02", 0o755)
	for name, c := range map[string]struct {
		command []string
		sha256  string
		within  time.Duration // of its start; 0: long
		want    []string
	}{
		"no such program":   {command: []string{"racflow-plugin-none"}, want: []string{"there is no program racflow-plugin-none"}},
		"no such file":      {command: []string{"/no/where"}, want: []string{"there is no program /no/where"}},
		"not executable":    {command: []string{plain}, want: []string{"may not be executed", "chmod +x " + plain}},
		"not a program":     {command: []string{foreign}, want: []string{"is not a program for this machine"}},
		"prints garbage":    {command: []string{self(t), "garbage"}, want: []string{"not a racflow plugin", `"hello, I am a spreadsheet"`, "serve.Plugin"}},
		"prints no line":    {command: []string{self(t), "endless"}, want: []string{"not a racflow plugin", "xxxx"}},
		"exits":             {command: []string{self(t), "exits"}, want: []string{"it ended before it was ready", "exit status 7", "no licence found, token (secret)"}},
		"hangs":             {command: hangs, within: 2 * time.Second, want: []string{"not ready within 2s", "waiting for a lock"}},
		"another protocol":  {command: []string{self(t), "old"}, want: []string{"version 0 of racflow's protocol, this racflow version 2", "update racflow"}},
		"tcp":               {command: []string{self(t), "tcp"}, want: []string{"listens on tcp", "unix socket"}},
		"without TLS":       {command: []string{self(t), "plain"}, want: []string{"no certificate", "PLUGIN_CLIENT_CERT"}},
		"another program":   {command: []string{self(t), "plugin"}, sha256: strings.Repeat("0", 64), want: []string{"not the program that was pinned", "pin it anew"}},
		"no handshake, cat": {command: []string{"true"}, want: []string{"ended before it was ready", "exit status 0", "it wrote nothing"}},
	} {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			h.limits.start = cmp.Or(c.within, 2*patience)
			_, err := h.Start(t.Context(), Spec{
				Kind: sdk.KindSample, Use: "x/echo", Block: "it", Command: c.command, SHA256: c.sha256, Secrets: []string{"hunter2secret"},
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
	if left, err := os.ReadDir(h.sockets); err != nil || len(left) > 0 {
		t.Errorf("socket folders are left: %v, %v", left, err)
	}
}

func TestPinnedProgramStarts(t *testing.T) {
	h, _ := newHost(t)
	hash, err := program.HashFile(self(t))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		p := start(t, h, Spec{Command: []string{self(t), "plugin"}, SHA256: strings.ToUpper(hash), Kind: sdk.KindSample, Use: "test/echo"})
		if got, err := ask(t, p, "a"); err != nil || got != "a" {
			t.Errorf("got %q, %v", got, err)
		}
	}
}

func TestOutputOfAnyKindIsHarmless(t *testing.T) {
	h, log := newHost(t)
	p := start(t, h, Spec{Command: []string{self(t), "noisy"}, Kind: sdk.KindSample, Use: "echo"})
	if got, err := ask(t, p, "shout"); err != nil || got != "shout" {
		t.Errorf("got %q, %v", got, err)
	}
	waitFor(t, "all output is in the log", func() bool {
		s := log.String()
		return strings.Contains(s, "@message") && strings.Contains(s, "eeee...") && strings.Contains(s, "oooo...") &&
			strings.Contains(s, `level=WARN msg="low on memory" stage=sample.it free=3`)
	})
	if len(log.String()) > 64<<10 {
		t.Errorf("the log has %d bytes", len(log.String()))
	}
	if got, err := ask(t, p, "a"); err != nil || got != "a" {
		t.Errorf("got %q, %v", got, err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	var sockets []string
	lines := bufio.NewScanner(stdout)
	for lines.Scan() && lines.Text() != "ready" {
		pid, rest, _ := strings.Cut(lines.Text(), " ")
		n, err := strconv.Atoi(pid)
		if err != nil {
			t.Fatal(err)
		}
		pids, sockets = append(pids, n), append(sockets, rest)
	}
	if len(pids) != 3 || !alive(pids[0]) {
		t.Fatalf("the host has started %v", pids)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for i, pid := range pids {
		waitFor(t, "the plugin is gone", func() bool { return !alive(pid) })
		if _, err := os.Stat(sockets[i]); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("its socket folder is left: %v", err)
		}
	}
}

func TestDescribeWaitsOnlySoLong(t *testing.T) {
	h, _ := newHost(t)
	h.limits.describe = 2 * time.Second
	begin := time.Now()
	_, err := h.Describe(t.Context(), hangs)
	if err == nil || !strings.Contains(err.Error(), "did not answer within 2s") || !strings.Contains(err.Error(), "waiting for a lock") {
		t.Errorf("got %v", err)
	}
	if took := time.Since(begin); took > patience {
		t.Errorf("it took %v", took)
	}
}

func TestFindAndDescribe(t *testing.T) {
	h, _ := newHost(t)
	first, second := t.TempDir(), t.TempDir()
	for _, path := range []string{first + "/racflow-plugin-acme", second + "/racflow-plugin-acme", second + "/racflow-plugin-zeta"} {
		script := "#!/bin/sh\necho started >> " + first + "/starts\nexec " + self(t) + " plugin\n"
		if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(second+"/racflow-plugin-readme", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	found, err := program.Find([]string{first, filepath.Join(first, "none"), second})
	want := []program.Plugin{{Name: "acme", Path: first + "/racflow-plugin-acme"}, {Name: "zeta", Path: second + "/racflow-plugin-zeta"}}
	if err != nil || len(found) != 2 || found[0] != want[0] || found[1] != want[1] {
		t.Fatalf("got %v, %v", found, err)
	}
	command := []string{found[0].Path}
	if _, ok := h.Known(command); ok {
		t.Error("known before it was asked")
	}
	for range 2 {
		p, err := h.Describe(t.Context(), command)
		if err != nil || p.Name != "test" || len(p.Stages) != len(testPlugin.Stages) || !p.Stages[0].Arguments[0].Secret {
			t.Fatalf("got %+v, %v", p, err)
		}
	}
	if p, ok := h.Known(command); !ok || p.Version != "0.1.0" {
		t.Errorf("got %+v, %v", p, ok)
	}
	if starts, err := os.ReadFile(first + "/starts"); err != nil || strings.Count(string(starts), "started") != 1 {
		t.Errorf("it was started %q times, %v", starts, err)
	}
	p := start(t, h, Spec{Kind: sdk.KindSample, Use: "acme/echo", Command: command})
	if got, err := ask(t, p, "a"); err != nil || got != "a" {
		t.Errorf("got %q, %v", got, err)
	}
}

// A config is checked by the plugin's own process, which opens nothing and whose
// errors tell no secret.
func TestValidate(t *testing.T) {
	h, _ := newHost(t)
	command := []string{"env", "GORACE=atexit_sleep_ms=0", h.options.Self, "plugin"}
	h.Secrets().Add("hush-hush")
	validate := func(config string) error {
		return h.Validate(t.Context(), command, sdk.KindSample, "echo", []byte(config))
	}
	if err := validate(`{"k": 99, "token": "hush-hush"}`); err != nil {
		t.Error(err)
	}
	err := validate(`{"delay": "2h", "token": "hush-hush"}`)
	all := sdk.ArgumentErrors(err)
	if len(all) != 1 || all[0].Argument != "delay" || !strings.Contains(all[0].Error(), "so long for (secret)") {
		t.Errorf("error %v", err)
	}
	if err := h.Validate(t.Context(), []string{"/nonexistent"}, sdk.KindSample, "echo", nil); err == nil || !strings.Contains(err.Error(), "did not start") {
		t.Errorf("error %v", err)
	}
}
