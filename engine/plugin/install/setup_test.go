package install

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"aead.dev/minisign"
	fake "github.com/google/go-containerregistry/pkg/registry"
	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/plugin/lock"
	"github.com/racflow/racflow/engine/plugin/publish"
	"github.com/racflow/racflow/engine/plugin/registry"
	"github.com/racflow/racflow/engine/plugin/signature"
	"github.com/racflow/racflow/engine/plugin/store"
	"github.com/racflow/racflow/engine/program"
	"github.com/racflow/racflow/sdk"
	folders "github.com/racflow/racflow/sdk/sdktest/must"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// server is a registry on loopback. Before it answers, it asks its hook, which may answer itself.
type server struct {
	*httptest.Server
	mu     sync.Mutex
	hook   func(w http.ResponseWriter, r *http.Request) bool
	served int
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{}
	inner := fake.New(fake.Logger(log.New(io.Discard, "", 0)), fake.WithReferrersSupport(true))
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.served++
		hook := s.hook
		s.mu.Unlock()
		if hook == nil || !hook(w, r) {
			inner.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// source is the repository of the plugin mine.
func (s *server) source() string { return s.Listener.Addr().String() + "/acme/racflow-plugin-mine" }

// serve sets the hook and forgets what was served.
func (s *server) serve(hook func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook, s.served = hook, 0
}

func (s *server) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.served
}

// newKey is a key of minisign.
func newKey(t *testing.T) *signature.PrivateKey {
	t.Helper()
	_, private, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "minisign.key")
	if err := os.WriteFile(path, must(private.MarshalText()), 0o600); err != nil {
		t.Fatal(err)
	}
	key := must(signature.ReadPrivateKey(path, nil))
	return &key
}

// said is what the plugin mine says of itself.
func said(version string) sdk.Plugin {
	return sdk.Plugin{Name: "mine", Version: version, Stages: []sdk.Stage{{Kind: sdk.KindRerank, Name: "mine", Doc: "Orders candidates."}}}
}

// executed is where the programs of these tests leave a mark if they are started.
const executed = "executed"

// dist makes a folder of built programs, one for each platform.
func dist(t *testing.T, version string, platforms ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, platform := range platforms {
		path := filepath.Join(dir, platform, program.Prefix+"mine")
		write(t, path, fmt.Sprintf("#!/bin/sh\n# %s for %s\ntouch '%s'\n", version, platform, filepath.Join(dir, executed)))
	}
	return dir
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
}

var both = []string{"linux_amd64", "linux_arm64"}

// release publishes a version; without a key it is not signed.
func release(t *testing.T, source, version string, key *signature.PrivateKey, platforms ...string) publish.Release {
	t.Helper()
	return releaseFrom(t, dist(t, version, platforms...), source, version, key)
}

func releaseFrom(t *testing.T, dist, source, version string, key *signature.PrivateKey) publish.Release {
	t.Helper()
	r, err := publish.Publish(context.Background(), dist, must(registry.Parse(source, "")), key,
		func(context.Context, program.Program) (sdk.Plugin, error) { return said(version), nil })
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// place is a folder with a pipeline file, and a machine's store.
type place struct {
	t         *testing.T
	dir       string
	installer Installer
}

func newPlace(t *testing.T) *place {
	t.Helper()
	return &place{t, t.TempDir(), Installer{Store: must(store.Open(folders.TempDir(t))), Platform: "linux/amd64", Describe: func(context.Context, program.Program) (sdk.Plugin, error) {
		t.Error("a program was started to describe itself")
		return sdk.Plugin{}, nil
	}}}
}

// require writes the pipeline file.
func (p *place) require(source, version string, more ...string) {
	p.t.Helper()
	write(p.t, filepath.Join(p.dir, "pipeline.hcl"), fmt.Sprintf("required_plugins {\n  mine = {\n    source  = %q\n    version = %q\n    %s\n  }\n}\n", source, version, strings.Join(more, "\n")))
}

// init calls Init for the folder's files. Want is a part of its diagnostic; empty: there is none.
func (p *place) init(want string) Outcome {
	p.t.Helper()
	before := p.lock()
	out, diags := p.installer.Init(context.Background(), must(Files(p.dir)), true)
	switch {
	case want == "" && diags.HasErrors():
		p.t.Fatal(diags)
	case want != "" && (!diags.HasErrors() || !strings.Contains(strings.ToLower(details(diags)), strings.ToLower(want))):
		p.t.Fatalf("got %q, want %q", details(diags), want)
	}
	if want != "" && p.lock() != before {
		p.t.Errorf("after an error the lock changed to\n%s", p.lock())
	}
	if diags.HasErrors() && diags[0].Subject == nil && !p.installer.Locked {
		p.t.Errorf("the diagnostic points nowhere: %v", diags)
	}
	return out
}

func details(diags hcl.Diagnostics) string {
	var all []string
	for _, d := range diags {
		all = append(all, d.Summary+": "+d.Detail)
	}
	return strings.Join(all, "\n")
}

func (p *place) lock() string {
	raw, err := os.ReadFile(filepath.Join(p.dir, lock.FileName))
	if err != nil && !os.IsNotExist(err) {
		p.t.Fatal(err)
	}
	return string(raw)
}

// locked is the plugin's entry.
func (p *place) locked() lock.Plugin {
	p.t.Helper()
	f, diags := lock.Read(filepath.Join(p.dir, lock.FileName))
	if diags.HasErrors() || len(f.Plugins) != 1 {
		p.t.Fatalf("the lock has %d plugins, %v", len(f.Plugins), diags)
	}
	return f.Plugins[0]
}

// machine gives the place another store, as on another machine.
func (p *place) machine(platform string) {
	p.t.Helper()
	p.installer.Store, p.installer.Platform = must(store.Open(folders.TempDir(p.t))), platform
}
