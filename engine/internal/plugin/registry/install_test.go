package registry

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	fake "github.com/google/go-containerregistry/pkg/registry"
	"github.com/hashicorp/hcl/v2"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/oci"

	"github.com/racflow/racflow/engine/internal/file/require"
	"github.com/racflow/racflow/engine/internal/plugin"
	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// archives serves files of releases, for two platforms each.
func archives(t *testing.T, versions ...string) (server *httptest.Server, sums map[string]string) {
	t.Helper()
	files, sums := map[string][]byte{}, map[string]string{}
	for _, version := range versions {
		for _, platform := range both {
			content := pack(t, entry{name: "racflow-plugin-mine/racflow-plugin-mine", content: "#!/bin/sh\n# " + platform + version + "\n"}, entry{name: "racflow-plugin-mine/data", content: "x"})
			files["/"+version+"/racflow-plugin-mine_"+platform+".tar.gz"] = content
			sum := sha256.Sum256(content)
			sums[version+" "+platform] = hex.EncodeToString(sum[:])
		}
	}
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/elsewhere") {
			http.Redirect(w, r, "/1.0.0/racflow-plugin-mine_linux_amd64.tar.gz", http.StatusFound)
			return
		}
		content, ok := files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(content) // the client notices a broken connection
	}))
	t.Cleanup(server.Close)
	return server, sums
}

// TestArchives installs programs from plain archives, as the file describes them.
func TestArchives(t *testing.T) {
	server, sums := archives(t, "1.0.0", "1.1.0")
	sha256 := func(version string) string {
		return fmt.Sprintf("sha256 = { \"linux/amd64\" = %q, \"linux/arm64\" = %q }", sums[version+" linux_amd64"], strings.ToUpper(sums[version+" linux_arm64"]))
	}
	p := newPlace(t)
	asked, version := 0, "1.0.0"
	p.installer.Describe = func(_ context.Context, from program.Program) (sdk.Plugin, error) {
		if asked++; from.Origin != program.Locked || from.Hash == "" {
			t.Errorf("%+v is started without a hash", from)
		}
		if version == "" {
			return sdk.Plugin{}, errors.New("it did not answer")
		}
		return said(version), nil
	}
	of := func(version string) string {
		return server.URL + "/" + version + "/racflow-plugin-mine_{os}_{arch}.tar.gz"
	}
	p.require(of("1.0.0"), "1.0.0", sha256("1.0.0"))
	p.init("")
	got := p.locked()
	must.Equal(t, "locked", plugin.LockedPlugin{Name: "mine", Source: of("1.0.0"), Version: "1.0.0", Constraint: "1.0.0", Protocol: 2}, got, cmpopts.IgnoreFields(got, "Digest", "Programs", "Range"))
	if len(got.Programs) != 2 || got.Programs["linux/amd64"] == got.Programs["linux/arm64"] {
		t.Errorf("programs %v", got.Programs)
	}
	installed := mustInstall(p.installer.Store.Program("mine", got.Programs["linux/amd64"]))
	if said, _, err := p.installer.Store.Description(installed.Hash); err != nil || said.Version != "1.0.0" || asked != 1 {
		t.Errorf("described as %+v, %v, after %d starts", said, err, asked)
	}
	if p.init("").Written || asked != 1 {
		t.Errorf("again: %d starts", asked)
	}
	p.machine("linux/arm64")
	if p.init("").Written || asked != 2 {
		t.Errorf("on another machine: %d starts", asked)
	}
	mustInstall(p.installer.Store.Program("mine", got.Programs["linux/arm64"]))
	p.machine("linux/amd64")
	p.init("")

	p.installer.Locked = true
	p.require(of("1.0.0"), "1.1.0", sha256("1.0.0"))
	p.init(`the file now has "1.1.0" from `)
	p.require(of("1.0.0"), "1.0.0", sha256("1.1.0"))
	p.init("or other archives (sha256)")
	p.installer.Locked = false
	version = "1.1.0"
	p.require(of("1.1.0"), "1.1.0", sha256("1.1.0"))
	if out := p.init(""); out.Changes[0].What() != "1.0.0 -> 1.1.0" {
		t.Errorf("%+v", out.Changes)
	}

	for _, c := range []struct{ source, version, sha256, says, want string }{
		{of("1.0.0"), "1.0.0", sha256("1.1.0"), "1.0.0", "it was changed, or was cut off after"},
		{of("1.0.0"), "1.0.0", `sha256 = { "linux/amd64" = "00" }`, "1.0.0", "is no sha256: it has 64 digits"},
		{of("1.0.0"), "1.0.0", `sha256 = { "linux/arm64" = "00" }`, "1.0.0", `no archive for linux/amd64 is named: add its hash, sha256 = { "linux/amd64" = "..." }`},
		{of("1.0.0"), "1.0.0", "", "1.0.0", "no archive for linux/amd64 is named"},
		{of("3.0.0"), "3.0.0", sha256("1.0.0"), "3.0.0", "the server answers 404"},
		{of("1.0.0"), "1.0.0", sha256("1.0.0"), "1.0.1", "which does not meet \"1.0.0\""},
		{of("1.0.0"), "1.0.0", sha256("1.0.0"), "", "it did not answer"},
		{of("1.0.0"), "~> 2.0", sha256("1.0.0"), "1.0.0", `the archive holds version 1.0.0 of "mine", which does not meet "~> 2.0"`},
		{server.URL + "/1.0.0/racflow-plugin-mine_{os}_{arch}.zip", "", sha256("1.0.0"), "1.0.0", "it takes a .tar.gz, or the program itself"},
	} {
		p.machine("linux/amd64")
		version = c.says
		p.require(c.source, c.version, c.sha256)
		p.init(c.want)
		if hasFolder(mustInstall(readDir(p.installer.Store.Dir()))) {
			t.Errorf("after %q something is left in the store", c.want)
		}
	}
}

func readDir(dir string) ([]os.DirEntry, error) {
	all, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return all, err
}

// TestArchiveFiles installs an archive, and a program, that are beside the file.
func TestArchiveFiles(t *testing.T) {
	for name, content := range map[string][]byte{
		"mine.tar.gz": pack(t, entry{name: "racflow-plugin-mine", content: "#!/bin/sh\n"}),
		"program":     []byte("#!/bin/sh\n"),
	} {
		p := newPlace(t)
		p.installer.Describe = func(context.Context, program.Program) (sdk.Plugin, error) { return said("1.0.0"), nil }
		if err := os.WriteFile(filepath.Join(p.dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(content)
		p.require("file:"+name, "", fmt.Sprintf("sha256 = { \"any/any\" = %q }", hex.EncodeToString(sum[:])))
		p.init("")
		if got := p.locked(); got.Version != "1.0.0" || got.Programs["any/any"] == "" {
			t.Errorf("%s: locked %+v", name, got)
		}
	}
}

// TestUnnamed installs a plugin only by its source.
func TestUnnamed(t *testing.T) {
	server, sums := archives(t, "1.0.0")
	s, p, ctx := newServer(t), newPlace(t), context.Background()
	release(t, s.source(), "1.2.0", nil, both...)
	got, installed, err := p.installer.Install(ctx, require.Plugin{Source: s.source()}, nil)
	if err != nil || !installed || got.Name != "mine" || got.Version != "1.2.0" {
		t.Errorf("got %+v, %v", got, err)
	}
	p.installer.Describe = func(context.Context, program.Program) (sdk.Plugin, error) { return said("1.0.0"), nil }
	sha256 := map[string]string{"linux/amd64": sums["1.0.0 linux_amd64"]}
	got, installed, err = p.installer.Install(ctx, require.Plugin{Source: server.URL + "/1.0.0/racflow-plugin-mine_linux_amd64.tar.gz", SHA256: sha256}, nil)
	if err != nil || !installed || got.Name != "mine" || got.Version != "1.0.0" {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, _, err = p.installer.Install(ctx, require.Plugin{Source: server.URL + "/elsewhere", SHA256: sha256}, nil); err == nil || !strings.Contains(err.Error(), "does not say which plugin it holds") {
		t.Errorf("got %v", err)
	}
}

// TestDamage serves content that does not match its digest, and checks that nothing of it stays.
func TestDamage(t *testing.T) {
	for _, c := range []struct {
		name, path, want string
		answer           func(w http.ResponseWriter, body []byte)
	}{
		{"program cut off", "program", "or it was cut off", func(w http.ResponseWriter, body []byte) {
			w.Header().Set("Content-Length", strconv.Itoa(len(body)))
			_, _ = w.Write(body[:len(body)/2]) // the handler's end breaks the connection
		}},
		{"another program", "program", "it is not what was published", func(w http.ResponseWriter, body []byte) {
			_, _ = w.Write(bytes.Repeat([]byte("x"), len(body)))
		}},
		{"description replaced", "config", "what arrived is not what its digest says", func(w http.ResponseWriter, body []byte) {
			_, _ = w.Write(bytes.ToUpper(body))
		}},
		{"program is gone", "program", "it is not there", func(w http.ResponseWriter, _ []byte) { http.Error(w, "gone", http.StatusNotFound) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, p := newServer(t), newPlace(t)
			release(t, s.source(), "1.0.0", nil, "linux_amd64")
			whole := blobs(t, s)
			s.serve(func(w http.ResponseWriter, r *http.Request) bool {
				body, ok := whole[r.URL.Path]
				if !ok || r.Method != http.MethodGet || strings.HasPrefix(string(body), "#!") != (c.path == "program") {
					return false
				}
				c.answer(w, body)
				return true
			})
			p.require(s.source(), "")
			p.init(c.want)
			if left := mustInstall(os.ReadDir(p.installer.Store.Dir())); len(left) > 0 && c.path == "program" && hasFolder(left) {
				t.Errorf("left behind: %v", left)
			}
			s.serve(nil)
			p.init("")
		})
	}
}

func hasFolder(all []os.DirEntry) bool {
	for _, e := range all {
		if e.IsDir() {
			return true
		}
	}
	return false
}

// blobs returns the blobs of the only release, by the path of their address.
func blobs(t *testing.T, s *server) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	s.serve(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
			all[r.URL.Path] = nil
		}
		return false
	})
	p := newPlace(t)
	p.require(s.source(), "")
	p.init("")
	s.serve(nil)
	for path := range all {
		recorded := httptest.NewRecorder()
		s.Config.Handler.ServeHTTP(recorded, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		all[path] = recorded.Body.Bytes()
	}
	return all
}

// entry is an entry of an archive. With a size of its own, it declares more than it holds.
type entry struct {
	name, content, link string
	size                int64
	count               int
}

func pack(t *testing.T, all ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	packed := gzip.NewWriter(&b)
	out := tar.NewWriter(packed)
	for _, e := range all {
		for range max(e.count, 1) {
			h := &tar.Header{Name: e.name, Mode: 0o755, Size: int64(len(e.content)), Typeflag: tar.TypeReg}
			if e.count > 0 {
				h.Typeflag = tar.TypeDir // the same entry again and again, which is fast
			}
			if e.link != "" {
				h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, e.link, 0
			}
			if e.size > 0 {
				h.Size = e.size
			}
			if err := out.WriteHeader(h); err != nil {
				t.Fatal(err)
			}
			_, _ = out.Write([]byte(e.content)) // a link has no content
		}
	}
	if err := out.Close(); err != nil && all[len(all)-1].size == 0 {
		t.Fatal(err)
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestHostileLayers has layers with the right digest but forbidden content.
func TestHostileLayers(t *testing.T) {
	must.NoRace(t)
	program := entry{name: "racflow-plugin-mine", content: "#!/bin/sh\n"}
	for _, c := range []struct {
		name string
		all  []entry
		want string
	}{
		{"path out of the folder", []entry{program, {name: "../../escaped", content: "x"}}, "outside of the plugin's folder"},
		{"link out of the folder", []entry{program, {name: "etc", link: "/etc"}}, "leads out of the plugin's folder"},
		{"file below a link out of the folder", []entry{program, {name: "up", link: "../../.."}, {name: "up/escaped", content: "x"}}, "escape"},
		{"bomb", []entry{program, {name: "zeros", size: maxProgram + 1}}, "GiB"},
		{"files without end", []entry{program, {name: "folder/", count: 100_001}}, "more than 100000 files"},
		{"another program", []entry{program}, "it is not what was published"},
		{"no program", []entry{{name: "README", content: "x"}}, "holds no program"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t)
			packed := filepath.Join(t.TempDir(), "layer")
			if err := os.WriteFile(packed, pack(t, c.all...), 0o600); err != nil {
				t.Fatal(err)
			}
			ctx := context.Background()
			repo := mustInstall(create(ctx, mustInstall(Parse("./plugins", p.dir))))
			digest := mustInstall(repo.Push(ctx, "mine", "1.0.0", mustInstall(EncodeDescription(said("1.0.0"))), map[string]layer{
				"linux/amd64": {Path: packed, Hash: "tree:" + strings.Repeat("0", 64), Folder: true},
			}))
			if err := repo.Tag(ctx, digest, "1.0.0"); err != nil {
				t.Fatal(err)
			}
			p.require("./plugins", "")
			p.init(c.want)
			if hasFolder(mustInstall(os.ReadDir(p.installer.Store.Dir()))) {
				t.Error("something is left in the store")
			}
			if found := mustInstall(filepath.Glob(filepath.Join(filepath.Dir(p.installer.Store.Dir()), "*", "escaped"))); len(found) > 0 {
				t.Errorf("escaped to %v", found)
			}
		})
	}
}

// TestCredentials uses the credentials of docker login. They are never shown, even if the registry repeats them.
func TestCredentials(t *testing.T) {
	const user, password = "robot", "hunter2-of-the-registry"
	s, p := newServer(t), newPlace(t)
	release(t, s.source(), "1.0.0", newKey(t), "linux_amd64")
	s.serve(func(w http.ResponseWriter, r *http.Request) bool {
		name, word, _ := r.BasicAuth()
		if name == user && word == password {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="acme"`)
		http.Error(w, `{"errors":[{"code":"UNAUTHORIZED","message":"not `+word+`"}]}`, http.StatusUnauthorized)
		return true
	})
	config := t.TempDir()
	t.Setenv("DOCKER_CONFIG", config)
	p.require(s.source(), "")
	p.init("log in with docker login 127.0.0.1:")
	login := func(password string) {
		host := s.Listener.Addr().String()
		write(t, filepath.Join(config, "config.json"), fmt.Sprintf(`{"auths":{%q:{"username":%q,"password":%q}}}`, host, user, password))
	}
	login("false-" + password)
	out, diags := p.installer.Init(context.Background(), mustInstall(PipelineFiles(p.dir)), true)
	if !diags.HasErrors() || strings.Contains(fmt.Sprint(out, details(diags)), password) {
		t.Errorf("with a false password: %v", details(diags))
	}
	login(password)
	p.init("")
	s.serve(func(w http.ResponseWriter, r *http.Request) bool {
		_, word, given := r.BasicAuth()
		if !given { // the registry gets them only after it asks
			w.Header().Set("WWW-Authenticate", `Basic realm="acme"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusTeapot)
		_, _ = fmt.Fprintf(w, `{"errors":[{"code":"BROKEN","message":"your header was %s and %s"}]}`, r.Header.Get("Authorization"), word)
		return true
	})
	p.installer.Upgrade = true
	if _, diags := p.installer.Init(context.Background(), mustInstall(PipelineFiles(p.dir)), true); !strings.Contains(details(diags), "your header was") || strings.Contains(details(diags), password) || strings.Contains(details(diags), "cm9ib3Q6") {
		t.Errorf("the registry repeats the password: %v", details(diags))
	}
}

// TestReleases installs a plugin with two versions for two platforms, signed, from first use to upgrade: from a
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
				t.Setenv(mirrorVariable, p.dir)
				target = filepath.Join(p.dir, s.source())
			}
			first := release(t, target, "1.2.0", key, both...)
			release(t, target, "2.0.0", key, both...)
			p.require(source, "~> 1.2")

			out := p.init("")
			got := p.locked()
			want := plugin.LockedPlugin{Name: "mine", Source: source, Version: "1.2.0", Constraint: "~> 1.2", Protocol: 2, Digest: first.Digest, Signer: first.Signer}
			must.Equal(t, "locked", want, got, cmpopts.IgnoreFields(got, "Programs", "Range"))
			must.Equal(t, "the lock is written", true, out.Written)
			if len(got.Programs) != 2 || got.Programs["linux/amd64"] == got.Programs["linux/arm64"] || !strings.HasPrefix(got.Programs["linux/arm64"], "sha256:") {
				t.Errorf("programs %v", got.Programs)
			}
			installed := mustInstall(p.installer.Store.Program("mine", got.Programs["linux/amd64"]))
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
			mustInstall(p.installer.Store.Program("mine", got.Programs["linux/arm64"]))

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

// TestLocked fails if the lock would change, and says why, without any request.
func TestLocked(t *testing.T) {
	for _, c := range []struct {
		name, source, constraint, want string
	}{
		{"same", "", "~> 1.2", ""},
		{"other version", "", "~> 2.0", `the file now has "~> 2.0" from `},
		{"other constraint that is met", "", ">= 1.2", `the file now has ">= 1.2"`},
		{"other source", "other.example/acme/mine", "~> 1.2", `the file now has "~> 1.2" from other.example/acme/mine`},
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

// TestLockedInstalls installs a locked program on a machine that does not have it, for example in CI.
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

// TestEverywhere installs a release's only program for all platforms, a folder with modules and a
// link.
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
	program := mustInstall(p.installer.Store.Program("mine", hash))
	if raw, err := os.ReadFile(filepath.Join(program.Folder, "vendor", "alias", "module.py")); string(raw) != "x = 1\n" || !strings.HasPrefix(hash, "tree:") {
		t.Errorf("%s holds %q, %v", hash, raw, err)
	}
}

// TestFiles has mistakes in files, and several files of one folder.
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
	write(t, second, mustInstall(readText(filepath.Join(p.dir, "pipeline.hcl"))))
	p.init("")
	write(t, second, strings.Replace(mustInstall(readText(second)), "1.2.0", "~> 1.1", 1))
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

// TestOffline gives advice if a registry is needed and does not answer.
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
	t.Setenv(mirrorVariable, t.TempDir())
	p.init("the mirror has no " + s.source())
}

// TestMoved uses the digest of the lock, wherever its tag points.
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
	p.init("is gone from " + s.source() + ": a release never changes")
	p.installer.Upgrade = true
	p.init("the tag of version 1.2.0 of " + s.source() + " was moved: the lock has the index " + locked.Digest)
}

func mustInstall[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// server is a registry on loopback. Before each answer it calls its hook, which may answer itself.
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

// source returns the repository of the plugin mine.
func (s *server) source() string { return s.Listener.Addr().String() + "/acme/racflow-plugin-mine" }

// serve sets the hook and forgets the served requests.
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

func newKey(t *testing.T) *PrivateKey { return &PrivateKey{newEd25519(t)} }

// said is the description of the plugin mine.
func said(version string) sdk.Plugin {
	return sdk.Plugin{Name: "mine", Version: version, Stages: []sdk.Stage{{Kind: sdk.KindRerank, Name: "mine", Doc: "Orders candidates."}}}
}

// executed is the file in which the programs of these tests leave a mark if they are started.
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
func release(t *testing.T, source, version string, key *PrivateKey, platforms ...string) Published {
	t.Helper()
	return releaseFrom(t, dist(t, version, platforms...), source, version, key)
}

func releaseFrom(t *testing.T, dist, source, version string, key *PrivateKey) Published {
	t.Helper()
	r, err := Publish(context.Background(), dist, mustInstall(Parse(source, "")), key,
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
	return &place{t, t.TempDir(), Installer{Store: mustInstall(OpenStore(must.TempDir(t))), Platform: "linux/amd64", Describe: func(context.Context, program.Program) (sdk.Plugin, error) {
		t.Error("a program was started to describe itself")
		return sdk.Plugin{}, nil
	}}}
}

// require writes the pipeline file.
func (p *place) require(source, version string, more ...string) {
	p.t.Helper()
	write(p.t, filepath.Join(p.dir, "pipeline.hcl"), fmt.Sprintf("required_plugins {\n  mine = {\n    source  = %q\n    version = %q\n    %s\n  }\n}\n", source, version, strings.Join(more, "\n")))
}

// init calls Init for the folder's files. want is a part of its diagnostic; empty: no diagnostic.
func (p *place) init(want string) Outcome {
	p.t.Helper()
	before := p.lock()
	out, diags := p.installer.Init(context.Background(), mustInstall(PipelineFiles(p.dir)), true)
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
	raw, err := os.ReadFile(filepath.Join(p.dir, plugin.LockName))
	if err != nil && !os.IsNotExist(err) {
		p.t.Fatal(err)
	}
	return string(raw)
}

// locked returns the plugin's entry in the lock.
func (p *place) locked() plugin.LockedPlugin {
	p.t.Helper()
	f, diags := plugin.ReadLock(filepath.Join(p.dir, plugin.LockName))
	if diags.HasErrors() || len(f.Plugins) != 1 {
		p.t.Fatalf("the lock has %d plugins, %v", len(f.Plugins), diags)
	}
	return f.Plugins[0]
}

// machine gives the place another store, as on another machine.
func (p *place) machine(platform string) {
	p.t.Helper()
	p.installer.Store, p.installer.Platform = mustInstall(OpenStore(must.TempDir(p.t))), platform
}

// TestSigner publishes a version with one key and the next version with another key, or with none.
func TestSigner(t *testing.T) {
	author, thief := newKey(t), newKey(t)
	for _, c := range []struct {
		name   string
		before *PrivateKey
		after  *PrivateKey
		trust  bool
		want   string
	}{
		{"the same", author, author, false, ""},
		{"another", author, thief, false, "if its author has changed the key, accept the new one with --trust-new-signer mine"},
		{"another, accepted", author, thief, true, ""},
		{"none any more", author, nil, false, "is not signed, and what is locked is signed by ed25519:"},
		{"none any more, accepted", author, nil, true, ""},
		{"signed from now on", nil, author, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, p := newServer(t), newPlace(t)
			release(t, s.source(), "1.0.0", c.before, both...)
			p.require(s.source(), "")
			p.init("")
			second := release(t, s.source(), "1.1.0", c.after, both...)
			p.installer.Upgrade = true
			if c.trust {
				p.installer.Trust = []string{"mine"}
			}
			p.init(c.want)
			if got := p.locked(); c.want == "" && (got.Version != "1.1.0" || got.Signer != second.Signer) {
				t.Errorf("locked %s, signed by %q", got.Version, got.Signer)
			}
			if c.want != "" {
				if all := mustInstall(p.installer.Store.List()); len(all) != 1 {
					t.Errorf("what is refused was installed: %v", all)
				}
			}
		})
	}
}

// TestEditedSigner: every machine refuses a lock with another signer than the release's.
func TestEditedSigner(t *testing.T) {
	s, p := newServer(t), newPlace(t)
	signed := release(t, s.source(), "1.0.0", newKey(t), both...)
	p.require(s.source(), "")
	p.init("")
	edited := p.locked()
	edited.Signer = newKey(t).Sign("").Signer
	must.Do(t, (&plugin.Lock{Plugins: []plugin.LockedPlugin{edited}}).Write(filepath.Join(p.dir, plugin.LockName)))
	const want = "if somebody has changed .racflow.lock.hcl, restore it"
	p.init(want)
	p.machine("linux/arm64")
	p.init(want)
	edited.Signer = signed.Signer
	must.Do(t, (&plugin.Lock{Plugins: []plugin.LockedPlugin{edited}}).Write(filepath.Join(p.dir, plugin.LockName)))
	p.init("")
	if hash := edited.Programs["linux/arm64"]; !p.installer.Store.Vouched(edited, hash) {
		t.Error("the signer is not noted")
	}
	must.Do(t, p.installer.Store.Remove(edited.Programs["linux/arm64"]))
	if p.installer.Store.Vouched(edited, edited.Programs["linux/arm64"]) {
		t.Error("the signer of a removed program is still noted")
	}
}

// cosigned adds a signature as cosign makes it with a plain key: under its own tag, or as a referrer.
func cosigned(t *testing.T, layout string, r Published, key crypto.Signer, bundle bool) {
	t.Helper()
	ctx := context.Background()
	to := mustInstall(oci.New(layout))
	push := func(mediaType string, raw []byte) ocispec.Descriptor {
		d := content.NewDescriptorFromBytes(mediaType, raw)
		if there, _ := to.Exists(ctx, d); !there {
			if err := to.Push(ctx, d, bytes.NewReader(raw)); err != nil {
				t.Fatal(err)
			}
		}
		return d
	}
	sign := func(message string) []byte {
		sum := sha256.Sum256([]byte(message))
		return mustInstall(key.Sign(rand.Reader, sum[:], crypto.SHA256))
	}
	m := ocispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, Config: push("application/vnd.oci.image.config.v1+json", []byte("{}"))}
	if !bundle {
		payload := fmt.Sprintf(`{"critical":{"identity":{"docker-reference":""},"image":{"docker-manifest-digest":%q},"type":"cosign container image signature"},"optional":null}`, r.Digest)
		layer := push("application/vnd.dev.cosign.simplesigning.v1+json", []byte(payload))
		layer.Annotations = map[string]string{"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(sign(payload))}
		m.Layers = []ocispec.Descriptor{layer}
		d := push(m.MediaType, mustInstall(json.Marshal(m)))
		if err := to.Tag(ctx, d, strings.Replace(r.Digest, ":", "-", 1)+".sig"); err != nil {
			t.Fatal(err)
		}
		return
	}
	const form = "application/vnd.in-toto+json"
	payload := fmt.Sprintf(`{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":%q}}],"predicateType":"https://sigstore.dev/cosign/sign/v1","predicate":{}}`, strings.TrimPrefix(r.Digest, "sha256:"))
	const kind = "application/vnd.dev.sigstore.bundle.v0.3+json"
	m.ArtifactType = kind
	subject := mustInstall(to.Resolve(ctx, r.Digest))
	m.Subject = &ocispec.Descriptor{MediaType: subject.MediaType, Digest: subject.Digest, Size: subject.Size}
	m.Layers = []ocispec.Descriptor{push(kind, mustInstall(json.Marshal(map[string]any{"mediaType": kind, "dsseEnvelope": map[string]any{
		"payload": []byte(payload), "payloadType": form,
		"signatures": []any{map[string]any{"sig": sign(fmt.Sprintf("DSSEv1 %d %s %d %s", len(form), form, len(payload), payload))}},
	}})))}
	push(m.MediaType, mustInstall(json.Marshal(m)))
}

// TestInstallCosign checks cosign's signatures with the key that a person gives.
func TestInstallCosign(t *testing.T) {
	for name, bundle := range map[string]bool{"tag": false, "referrer": true} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			layout := filepath.Join(p.dir, "plugins")
			key := mustInstall(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
			r := release(t, layout, "1.0.0", nil, both...)
			cosigned(t, layout, r, key, bundle)
			p.require("./plugins", "")
			p.init("pass the public key with --key mine=cosign.pub, or take it unsigned with --trust-new-signer mine")
			p.installer.Keys = map[string]PublicKey{"mine": publicKey(t, mustInstall(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)))}
			p.init("is not signed by the key that --key names")
			p.installer.Keys["mine"] = publicKey(t, key)
			p.init("")
			signer := p.locked().Signer
			if !strings.HasPrefix(signer, "cosign:sha256:") || !p.installer.Keys["mine"].Is(signer) {
				t.Errorf("signed by %q", signer)
			}
			p.init("")
			p.installer.Keys["mine"] = publicKey(t, mustInstall(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)))
			p.init("signed by cosign:sha256:")
			p.installer.Keys["mine"] = publicKey(t, key)
			release(t, layout, "1.1.0", newKey(t), both...)
			p.installer.Upgrade = true
			p.init("and not by the key that --key names")
		})
	}
}

func publicKey(t *testing.T, key *ecdsa.PrivateKey) PublicKey {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cosign.pub")
	write(t, path, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: mustInstall(x509.MarshalPKIXPublicKey(key.Public()))})))
	return mustInstall(ReadPublicKey(path))
}
