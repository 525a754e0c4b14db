package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/internal/remote/bus"
	"github.com/racflow/racflow/engine/internal/remote/caller"
	"github.com/racflow/racflow/engine/internal/remote/natstest"

	"github.com/racflow/racflow/engine/internal/run/journal"
)

// verb runs a verb of racflow in this process.
func verb(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	var text bytes.Buffer
	c := newRoot()
	c.SetArgs(args)
	c.SetOut(&text)
	c.SetErr(&text)
	err = c.ExecuteContext(t.Context())
	return text.String(), err
}

// A run at servers is looked into, listed and removed from anywhere.
func TestRunsAtServers(t *testing.T) {
	s := natstest.Start(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn := connect(t, s.URL())
	out, err := verb(t, "runs", "list", "--on", s.URL())
	if lines := strings.Count(out, "\n"); err != nil || lines != 1 {
		t.Errorf("no run: %s, %v", out, err)
	}
	if _, err := verb(t, "runs", "show", "newest", "--on", s.URL()); err == nil || !strings.Contains(err.Error(), "no run is at the servers") {
		t.Errorf("none is the newest: %v", err)
	}
	begin := func(id string) *bus.Run {
		d := caller.Definition{Format: caller.DefinitionFormat, Run: id, Version: "1.2.3", Started: time.Date(2026, 11, 23, 18, 0, 0, 0, time.UTC),
			Manifest: journal.Manifest{ID: "run-000007", File: "/elsewhere/p.hcl", Pipeline: "p", Input: journal.SeenFile{Path: "/elsewhere/items.tsv"}}}
		data, err := d.Encode()
		if err != nil {
			t.Fatal(err)
		}
		run, err := conn.Create(ctx, bus.Config{ID: id, Definition: data})
		if err != nil {
			t.Fatal(err)
		}
		return run
	}
	put := func(run *bus.Run, key string, value any) {
		t.Helper()
		data, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := run.Put(ctx, key, data); err != nil {
			t.Fatal(err)
		}
	}
	begin("b222222")
	run := begin("k3v9q2")
	for seq := range 5 {
		if err := run.Publish(ctx, bus.Position{Part: 1, Seq: seq + 1}, nil); err != nil {
			t.Fatal(err)
		}
	}
	batch, err := run.Take(ctx)
	if err != nil {
		t.Fatal(err)
	}
	err = batch.Done(ctx)
	if _, taken := run.Take(ctx); errors.Join(err, taken) != nil {
		t.Fatal(err, taken)
	}
	theirs := caller.SeenCaller{Name: "here-1", Host: "here", Published: 5, Total: 5, Items: 320}
	put(run, caller.CallerKey, theirs)
	put(run, caller.WorkerPrefix+"one-1", caller.WorkerState{Name: "one-1", Host: "one", State: caller.Working, Batches: 1, Items: 64, Failed: 2, Rate: 12.4, Tokens: 640, Cost: .5})
	put(run, caller.WorkerPrefix+"two-1", caller.WorkerState{Name: "two-1", Host: "two\x1b[31m", State: caller.Lacks, Lacks: []string{"the environment has no KEY"}})

	state := t.TempDir()
	for n, cluster := range []*journal.ManifestCluster{{Run: "k3v9q2"}, nil} {
		name := fmt.Sprintf("run-%06d", n+1)
		dir := filepath.Join(state, "runs", name)
		if err := errors.Join(os.MkdirAll(dir, 0o700), journal.Manifest{Format: journal.CurrentFormat, ID: name, Cluster: cluster}.Write(dir, false)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := verb(t, "runs", "show", "run-000002", "--state", state, "--on", s.URL()); err == nil || !strings.Contains(err.Error(), "leave out --on") {
		t.Errorf("a run of this machine: %v", err)
	}

	t.Setenv(serversVariable, s.URL())
	for _, args := range [][]string{{"k3v9q2"}, {"k3v9q2", "--on", s.URL()}, {"newest", "--on", s.URL()}, {"run-000001", "--state", state, "--on", s.URL()}} {
		out, err := verb(t, append([]string{"runs", "show"}, args...)...)
		for _, want := range []string{
			`run +k3v9q2, working\n`, `file +/elsewhere/p.hcl, pipeline p\n`, `items +64 of 320 answered, 2 failed, 12/s now, 21s left\n`,
			`batches +5 of 5 published, 1 answered, 0 with the caller\n`, `lag +3 waiting, 1 under way, the oldest for [0-9]+s\n`, `took +640 tokens, cost 0.5000\n`,
			`caller +here-1 on here\n`, `journal +run-000007, `, `\none-1 +one +working +1 +64 +2 +12/s +640 +0.5000\n`, `\ntwo-1 +two[^\x1b]* +lacks +0 `, `two-1 lacks: the environment has no KEY\n`,
		} {
			if !regexp.MustCompile(want).MatchString(out) || err != nil {
				t.Errorf("%v: no %q in %v\n%s", args, want, err, out)
			}
		}
	}
	out, err = verb(t, "runs", "show", "k3v9q2", "--json")
	var shown caller.Status
	if jsonErr := json.Unmarshal([]byte(out), &shown); jsonErr != nil || err != nil || shown.Batches.Waiting != 3 || len(shown.Workers) != 2 || shown.Workers[0].Rate != 12.4 {
		t.Errorf("as JSON: %v, %v\n%s", err, jsonErr, out)
	}
	out, err = verb(t, "runs", "list", "--on", s.URL())
	if !regexp.MustCompile(`(?s)RUN .*\nb222222 .* waiting +0 .*\nk3v9q2 .* p +working +64 of 320 +12/s +21s +1 +640 +0.5000\n$`).MatchString(out) || err != nil {
		t.Errorf("all runs: %v\n%s", err, out)
	}
	out, err = verb(t, "runs", "list", "--json", "--on", s.URL())
	if strings.Count(out, "\n") != 2 || !strings.Contains(out, `{"run":"k3v9q2","state":"working",`) || err != nil {
		t.Errorf("all runs as JSON: %v\n%s", err, out)
	}

	if out, err := verb(t, "runs", "remove", "k3v9q2", "--on", s.URL()); err == nil || !strings.Contains(err.Error(), "its caller here-1 is at work on here") {
		t.Errorf("a run at work: %v, %s", err, out)
	}
	theirs.Detached = true
	put(run, caller.CallerKey, theirs)
	if out, err := verb(t, "runs", "remove", "k3v9q2", "b222222"); err != nil || out != "removed k3v9q2, b222222\n" {
		t.Errorf("removed: %v, %s", err, out)
	}
	if _, err := verb(t, "runs", "show", "k3v9q2"); !errors.Is(err, bus.ErrNoRun) || !strings.Contains(err.Error(), "runs list --on") {
		t.Errorf("a run that was removed: %v", err)
	}
	if ids, err := conn.Runs(ctx); err != nil || len(ids) != 0 {
		t.Errorf("left: %v, %v", ids, err)
	}
}
