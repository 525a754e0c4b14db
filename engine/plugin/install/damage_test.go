package install

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/plugin/registry"
	"github.com/racflow/racflow/engine/plugin/store"
)

// TestDamage serves what is not what its digest says, and looks that nothing of it stays.
func TestDamage(t *testing.T) {
	for _, c := range []struct {
		name, path, want string
		answer           func(w http.ResponseWriter, body []byte)
	}{
		{"program cut off", "program", "or it was cut off", func(w http.ResponseWriter, body []byte) {
			w.Header().Set("Content-Length", strconv.Itoa(len(body)))
			_, _ = w.Write(body[:len(body)/2]) // the handler's end breaks the connection off
		}},
		{"another program", "program", "what arrived is not what its digest says", func(w http.ResponseWriter, body []byte) {
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
			if left := must(os.ReadDir(p.installer.Store.Dir())); len(left) > 0 && c.path == "program" && hasFolder(left) {
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

// blobs are the blobs of the one release, by the path of their address.
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

// entry is one of an archive; with a size of its own it says more than it holds.
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
				h.Typeflag = tar.TypeDir // the same one again and again, which is fast
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
			_, _ = out.Write([]byte(e.content)) // of a link it takes none
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

// TestHostileLayers has layers with the right digest that unpack to what they must not.
func TestHostileLayers(t *testing.T) {
	program := entry{name: "racflow-plugin-mine", content: "#!/bin/sh\n"}
	for _, c := range []struct {
		name string
		all  []entry
		want string
	}{
		{"path out of the folder", []entry{program, {name: "../../escaped", content: "x"}}, "outside of the plugin's folder"},
		{"link out of the folder", []entry{program, {name: "etc", link: "/etc"}}, "leads out of the plugin's folder"},
		{"file below a link out of the folder", []entry{program, {name: "up", link: "../.."}, {name: "up/escaped", content: "x"}}, "escape"},
		{"bomb", []entry{program, {name: "zeros", size: store.MaxSize + 1}}, "GiB"},
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
			repo := must(registry.Create(ctx, must(registry.Parse("./plugins", p.dir))))
			digest := must(repo.Push(ctx, "mine", "1.0.0", must(store.Encode(said("1.0.0"))), map[string]registry.Layer{
				"linux/amd64": {Path: packed, Hash: "tree:" + strings.Repeat("0", 64), Folder: true},
			}))
			if err := repo.Tag(ctx, digest, "1.0.0"); err != nil {
				t.Fatal(err)
			}
			p.require("./plugins", "")
			p.init(c.want)
			if hasFolder(must(os.ReadDir(p.installer.Store.Dir()))) {
				t.Error("something is left in the store")
			}
			if found := must(filepath.Glob(filepath.Join(filepath.Dir(p.installer.Store.Dir()), "*", "escaped"))); len(found) > 0 {
				t.Errorf("escaped to %v", found)
			}
		})
	}
}

// TestCredentials uses those of docker login, and shows them nowhere, even where the registry repeats them.
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
	out, diags := p.installer.Init(context.Background(), must(Files(p.dir)), true)
	if !diags.HasErrors() || strings.Contains(fmt.Sprint(out, details(diags)), password) {
		t.Errorf("with a false password: %v", details(diags))
	}
	login(password)
	p.init("")
	s.serve(func(w http.ResponseWriter, r *http.Request) bool {
		_, word, given := r.BasicAuth()
		if !given { // nobody is told it before asking for it
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
	if _, diags := p.installer.Init(context.Background(), must(Files(p.dir)), true); !strings.Contains(details(diags), "your header was") || strings.Contains(details(diags), password) || strings.Contains(details(diags), "cm9ib3Q6") {
		t.Errorf("the registry repeats the password: %v", details(diags))
	}
}
