package install

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/plugin/registry"
)

// TestReleases takes a plugin of two versions for two platforms, signed, from first use to upgrade, from a
// registry, an OCI layout, and a mirror of the registry.
func TestReleases(t *testing.T) {
	for _, from := range []string{"registry", "layout", "mirror"} {
		t.Run(from, func(t *testing.T) {
			s, p, key := newServer(t), newPlace(t), newKey(t)
			source, target := s.source(), s.source()
			switch from {
			case "layout":
				source, target = "./plugins", filepath.Join(p.dir, "plugins")
			case "mirror":
				t.Setenv(registry.MirrorVariable, p.dir)
				target = filepath.Join(p.dir, s.source())
			}
			first := release(t, target, "1.2.0", key, both...)
			release(t, target, "2.0.0", key, both...)
			p.require(source, "~> 1.2")

			out := p.init("")
			got := p.locked()
			if !out.Written || got.Version != "1.2.0" || got.Constraint != "~> 1.2" || got.Source != source || got.Digest != first.Digest || got.Signer != first.Signer || got.Protocol != 2 {
				t.Errorf("locked %+v", got)
			}
			if len(got.Programs) != 2 || got.Programs["linux/amd64"] == got.Programs["linux/arm64"] || !strings.HasPrefix(got.Programs["linux/arm64"], "sha256:") {
				t.Errorf("programs %v", got.Programs)
			}
			installed := must(p.installer.Store.Program("mine", got.Programs["linux/amd64"]))
			if plugin, _, err := p.installer.Store.Description(installed.Hash); err != nil || plugin.Version != "1.2.0" || len(plugin.Stages) != 1 {
				t.Errorf("described as %+v, %v", plugin, err)
			}
			if c := out.Changes[0]; c.What() != "added" || !c.Installed {
				t.Errorf("%+v", c)
			}

			second := release(t, target, "1.3.0", key, both...)
			s.serve(nil)
			if out := p.init(""); out.Written || out.Changes[0].What() != "" || s.requests() > 0 {
				t.Errorf("with everything there: %+v after %d requests", out.Changes, s.requests())
			}
			p.machine("linux/arm64")
			if out := p.init(""); out.Written || !out.Changes[0].Installed {
				t.Errorf("on another machine: %+v", out.Changes)
			}
			must(p.installer.Store.Program("mine", got.Programs["linux/arm64"]))

			p.installer.Upgrade = true
			if out := p.init(""); out.Changes[0].What() != "1.2.0 -> 1.3.0" || p.locked().Digest != second.Digest {
				t.Errorf("upgraded to %+v", p.locked())
			}
			p.installer.Upgrade = false
			p.require(source, "1.2.0")
			if out := p.init(""); out.Changes[0].What() != "1.3.0 -> 1.2.0" {
				t.Errorf("another constraint: %+v", out.Changes)
			}
			if from != "registry" && s.requests() > 0 {
				t.Errorf("the registry was asked %d times", s.requests())
			}
			if err := os.Remove(filepath.Join(p.dir, "pipeline.hcl")); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(p.dir, "other.hcl"), "")
			if out := p.init(""); out.Changes[0].What() != "removed" || strings.Contains(p.lock(), "mine") {
				t.Errorf("no longer required: %+v, %s", out.Changes, p.lock())
			}
		})
	}
}

// TestLocked fails where the lock would change, and says why, without asking anybody.
func TestLocked(t *testing.T) {
	for _, c := range []struct {
		name, source, constraint, want string
	}{
		{"same", "", "~> 1.2", ""},
		{"other version", "", "~> 2.0", `version 1.2.0, chosen by "~> 1.2", and the file now has "~> 2.0"`},
		{"other constraint that is met", "", ">= 1.2", `the file now has ">= 1.2"`},
		{"other source", "other.example/acme/mine", "~> 1.2", "the file from other.example/acme/mine"},
		{"not locked", "", "", "it is not in the lock"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, p := newServer(t), newPlace(t)
			release(t, s.source(), "1.2.0", nil, both...)
			release(t, s.source(), "2.0.0", nil, both...)
			p.require(s.source(), "~> 1.2")
			if c.constraint != "" {
				p.init("")
			}
			if c.source == "" {
				c.source = s.source()
			}
			p.require(c.source, c.constraint)
			s.serve(nil)
			p.installer.Locked = true
			p.init(c.want)
			if s.requests() > 0 {
				t.Errorf("%d requests", s.requests())
			}
		})
	}
}

// TestLockedInstalls brings a locked program onto a machine that does not have it, for example in CI.
func TestLockedInstalls(t *testing.T) {
	s, p := newServer(t), newPlace(t)
	release(t, s.source(), "1.2.0", newKey(t), both...)
	p.require(s.source(), "")
	p.init("")
	p.machine("linux/amd64")
	p.installer.Locked = true
	if out := p.init(""); !out.Changes[0].Installed {
		t.Error("it was not installed")
	}
	p.machine("windows/amd64")
	p.init("version 1.2.0 of " + s.source() + " has no program for windows/amd64, only for linux/amd64, linux/arm64: choose another version, or ask its author")
}

// TestEverywhere installs the one program that a release has for all platforms, a folder with modules and a link.
func TestEverywhere(t *testing.T) {
	s, p := newServer(t), newPlace(t)
	dir := t.TempDir()
	folder := filepath.Join(dir, "any_any", "racflow-plugin-mine")
	write(t, filepath.Join(folder, "racflow-plugin-mine"), "#!/usr/bin/env python3\n")
	write(t, filepath.Join(folder, "vendor", "package", "module.py"), "x = 1\n")
	write(t, filepath.Join(folder, "__pycache__", "module.pyc"), "left out")
	if err := os.Chmod(filepath.Join(folder, "vendor", "package", "module.py"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("package", filepath.Join(folder, "vendor", "alias")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "linux_amd64", "racflow-plugin-mine"), "#!/bin/sh\n")
	r := releaseFrom(t, dir, s.source(), "1.0.0", nil)
	if again := releaseFrom(t, dir, s.source(), "1.0.0", nil); again.Digest != r.Digest {
		t.Errorf("the same release has the digests %s and %s", r.Digest, again.Digest)
	}
	p.require(s.source(), "")
	p.installer.Platform = "freebsd/riscv64"
	p.init("")
	hash := p.locked().Programs["any/any"]
	program := must(p.installer.Store.Program("mine", hash))
	if raw, err := os.ReadFile(filepath.Join(program.Folder, "vendor", "alias", "module.py")); string(raw) != "x = 1\n" || !strings.HasPrefix(hash, "tree:") {
		t.Errorf("%s holds %q, %v", hash, raw, err)
	}
}

// TestFiles are mistakes in files, and several files of one folder.
func TestFiles(t *testing.T) {
	s, p := newServer(t), newPlace(t)
	release(t, s.source(), "1.2.0", nil, both...)
	release(t, s.source(), "1.3.0-rc.1", nil, both...)
	for _, c := range []struct{ source, version, want string }{
		{"acme/mine", "", "names no repository; write the registry and the repository"},
		{s.source() + ":1.2.0", "", "write the repository alone, and the version in version"},
		{s.source(), "one", "is no constraint of versions; write it as in"},
		{s.source(), "~> 3.0", `no release of ` + s.source() + ` meets "~> 3.0"; there are 1.3.0-rc.1, 1.2.0`},
		{s.source() + "-none", "", "it is not there"},
		{"./none", "", "is no OCI layout"},
		{"http://example.com/x.tar.gz", "", "by https"},
		{"https://user:hunter2@example.com/x.tar.gz", "", "holds a name or a password"},
		{s.source(), "1.3.0-rc.1", ""},
		{s.source(), "", ""},
		{s.source(), "1.2.0", ""},
	} {
		p.require(c.source, c.version)
		p.init(c.want)
	}
	write(t, filepath.Join(p.dir, "pipeline.hcl"), "required_plugins {\n  mine = {\n")
	p.init("Missing")
	p.require(s.source(), "", `sha256 = { "linux/amd64" = "00" }`)
	p.init("sha256 is for archives")
	p.require(s.source(), "1.2.0")
	second := filepath.Join(p.dir, "second.hcl")
	write(t, second, must(readText(filepath.Join(p.dir, "pipeline.hcl"))))
	p.init("")
	write(t, second, strings.Replace(must(readText(second)), "1.2.0", "~> 1.1", 1))
	p.init("Files of one folder share one lock")
	write(t, second, "required_plugins {\n  mine = { network = [\"example.com:443\"] }\n}\n")
	p.init("")
	write(t, second, "required_plugins {\n  other = { source = \"./none\" }\n}\n")
	if out, diags := p.installer.Init(context.Background(), []string{filepath.Join(p.dir, "pipeline.hcl")}, false); diags.HasErrors() || out.Written || len(out.Changes) != 1 {
		t.Errorf("one of the files: %v, %+v", diags, out)
	}
	write(t, second, "required_plugins {\n  yours = { source = \""+s.source()+"\" }\n}\n")
	p.init(`is the plugin "mine": call the entry mine in place of yours`)
}

func readText(path string) (string, error) {
	raw, err := os.ReadFile(path)
	return string(raw), err
}

// TestOffline says what to do where a registry is needed and does not answer.
func TestOffline(t *testing.T) {
	s, p := newServer(t), newPlace(t)
	release(t, s.source(), "1.2.0", nil, both...)
	p.require(s.source(), "")
	p.init("")
	s.Close()
	p.init("")
	p.installer.Locked = true
	p.init("")
	p.installer.Locked = false
	p.machine("linux/amd64")
	p.init("without a network, install what the lock has on a machine with one, or name a mirror in RACFLOW_PLUGIN_MIRROR")
	t.Setenv(registry.MirrorVariable, t.TempDir())
	p.init("the mirror has no " + s.source())
}

// TestMoved keeps to the digest of the lock wherever its tag leads.
func TestMoved(t *testing.T) {
	s, p := newServer(t), newPlace(t)
	release(t, s.source(), "1.2.0", nil, both...)
	p.require(s.source(), "~> 1.2")
	p.init("")
	locked := p.locked()
	forged := newServer(t)
	release(t, forged.source(), "1.2.0", nil, "linux_amd64")
	s.serve(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/manifests/1.2.0") {
			return false
		}
		forged.Config.Handler.ServeHTTP(w, r)
		return true
	})
	p.machine("linux/amd64")
	if out := p.init(""); out.Written || !out.Changes[0].Installed || p.locked().Digest != locked.Digest {
		t.Errorf("locked %+v, want %+v", p.locked(), locked)
	}
	moveAll := func(w http.ResponseWriter, r *http.Request) bool {
		forged.Config.Handler.ServeHTTP(w, r)
		return true
	}
	s.serve(moveAll)
	p.machine("linux/amd64")
	p.init("is gone from " + s.source() + ", and its tag now leads to sha256:")
	p.installer.Upgrade = true
	p.init("the tag of version 1.2.0 of " + s.source() + " was moved: the lock has the index " + locked.Digest)
}
