package registry

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/racflow/racflow/engine/internal/plugin"
	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

func open(t *testing.T) *Store {
	t.Helper()
	s, err := OpenStore(filepath.Join(must.TempDir(t), "cache"))
	must.Do(t, err)
	return s
}

func description(t *testing.T) []byte {
	t.Helper()
	raw, err := EncodeDescription(sdk.Plugin{Name: "mine", Version: "1.2.3", Stages: []sdk.Stage{
		sdk.SampleStage("words", "Counts words.", func(context.Context, sdk.Setup, struct{}) (sdk.Sampler, error) { return nil, nil }, sdk.Reads(sdk.ColumnText)),
	}})
	must.Do(t, err)
	return raw
}

// packed returns a tar.gz of entries: their names, with their content or, after ->, the target of a
// link.
func packed(t *testing.T, entries ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	archive := tar.NewWriter(zipped)
	for _, entry := range entries {
		name, content, _ := strings.Cut(entry, " ")
		h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content))}
		target, isLink := strings.CutPrefix(content, "-> ")
		switch {
		case isLink:
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, target, 0
		case content == "hard":
			h.Typeflag, h.Linkname, h.Size = tar.TypeLink, "racflow-plugin-mine", 0
		case content == "pipe":
			h.Typeflag, h.Size = tar.TypeFifo, 0
		case strings.HasSuffix(name, "/"):
			h.Typeflag, h.Size = tar.TypeDir, 0
		case strings.HasPrefix(content, "#!"):
			h.Mode = 0o777
		}
		must.Do(t, archive.WriteHeader(h))
		if h.Size > 0 {
			if _, err := archive.Write([]byte(content)); err != nil {
				t.Fatal(err)
			}
		}
	}
	must.Do(t, errors.Join(archive.Close(), zipped.Close()))
	return out.Bytes()
}

const script = "racflow-plugin-mine #!/bin/sh"

// A program comes out of the store unchanged and checked, and nobody can change it.
func TestStore(t *testing.T) {
	s := open(t)
	tree := packed(t, "racflow-plugin-mine/", "racflow-plugin-mine/racflow-plugin-mine #!/bin/sh", "racflow-plugin-mine/lib/a.py a", "racflow-plugin-mine/lib/b.py -> a.py",
		"racflow-plugin-mine/lib/__pycache__/a.pyc x", "racflow-plugin-mine/.git/HEAD x")
	hashes := map[string]string{}
	for kind, layer := range map[string][]byte{"file": []byte("#!/bin/sh"), "tree": tree} {
		hash, err := s.Add("mine", bytes.NewReader(layer), kind == "tree", "", description(t))
		must.Do(t, err)
		if again, err := s.Add("mine", bytes.NewReader(layer), kind == "tree", hash, description(t)); err != nil || again != hash {
			t.Errorf("%s again: %s, %v", kind, again, err)
		}
		p := must.Get(s.Program("mine", hash))(t)
		must.Equal(t, kind+": name, hash, origin, and whether it has a folder", []any{"mine", hash, program.Locked, kind == "tree"}, []any{p.Name, p.Hash, p.Origin, p.Folder != ""})
		about, protocol, err := s.Description(hash)
		must.Do(t, err)
		must.Equal(t, kind+": protocol, version, number of stages", []any{2, "1.2.3", 1}, []any{protocol, about.Version, len(about.Stages)})
		must.Equal(t, kind+": its stage reads", sdk.Of(sdk.ColumnText), about.Stages[0].Reads)
		err = filepath.WalkDir(filepath.Dir(s.dir), func(path string, e fs.DirEntry, err error) error {
			info, bad := e.Info()
			if err != nil || bad != nil {
				return errors.Join(err, bad)
			}
			if strings.HasPrefix(path, s.dir) && info.Mode()&fs.ModeSymlink == 0 && info.Mode()&0o077 != 0 {
				t.Errorf("%s has the mode %v", path, info.Mode())
			}
			if info.Mode().IsRegular() && !strings.HasSuffix(path, ".json") && info.Mode()&0o222 != 0 {
				t.Errorf("%s has the mode %v", path, info.Mode())
			}
			if program.Skipped(e.Name()) {
				t.Errorf("%s was unpacked", path)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		hashes[kind] = hash
	}
	if !strings.HasPrefix(hashes["file"], "sha256:") || !strings.HasPrefix(hashes["tree"], "tree:") {
		t.Errorf("hashes %v", hashes)
	}
	// The same folder at the top of the archive.
	if hash, err := s.Add("mine", bytes.NewReader(packed(t, script, "./lib/a.py a", "lib/b.py -> a.py")), true, hashes["tree"], description(t)); err != nil {
		t.Errorf("at the top: %s, %v", hash, err)
	}
	all := must.Get(s.List())(t)
	must.Equal(t, "number listed, and the first", []any{2, Installed{"mine", hashes["file"], "1.2.3"}}, []any{len(all), all[0]})
	copied, err := OpenStore(filepath.Join(t.TempDir(), "copied"))
	must.Do(t, err)
	for kind, hash := range hashes {
		of := plugin.LockedPlugin{Digest: "sha256:1", Signer: "ed25519:2"}
		must.Do(t, s.Vouch(of, hash))
		must.Do(t, s.CopyTo(copied.Dir(), hash))
		p, err := copied.Program("mine", hash)
		about, _, undescribed := copied.Description(hash)
		must.Equal(t, kind+": of the copy hash, version, vouched, errors", []any{hash, "1.2.3", true, nil, nil}, []any{p.Hash, about.Version, copied.Vouched(of, hash), err, undescribed})
	}
	for _, hash := range hashes {
		if err := s.Remove(hash); err != nil {
			t.Error(err)
		}
		_, err := s.Program("mine", hash)
		_, _, undescribed := s.Description(hash)
		if !errors.Is(err, ErrMissing) || !errors.Is(undescribed, ErrMissing) || !errors.Is(s.Remove(hash), ErrMissing) {
			t.Errorf("after it was removed: %v, %v", err, undescribed)
		}
	}
	if left, err := os.ReadDir(s.dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// A program that differs from the published one, or would be stored elsewhere, is not installed,
// and leaves nothing behind.
func TestAddRefuses(t *testing.T) {
	whole := packed(t, script, "lib/a.py "+strings.Repeat("a", 5000))
	const other = "tree:0000000000000000000000000000000000000000000000000000000000000000"
	for name, c := range map[string]struct {
		layer   []byte
		archive bool
		want    string // hash
		about   string // description
		err     string
	}{
		"another hash":             {whole, true, other, "", "it is not what was published, or it was cut off"},
		"another file":             {[]byte("x"), false, other, "", "it is not what was published"},
		"cut off":                  {whole[:len(whole)/2], true, "", "", "cannot be read"},
		"cut off at the end":       {whole[:len(whole)-2], true, "", "", "cannot be read"},
		"no archive":               {[]byte("hello"), true, "", "", "is no tar.gz"},
		"a name above":             {packed(t, script, "../x y"), true, "", "", "would be unpacked outside"},
		"a link out":               {packed(t, script, "a -> ../../x"), true, "", "", "leads"},
		"a link to a file outside": {packed(t, script, "a -> /etc/passwd"), true, "", "", "leads out of the plugin's folder"},
		"through a link":           {packed(t, script, "a -> /tmp", "a/x y"), true, "", "", "archive's a/x"},
		"a hard link":              {packed(t, script, "a hard"), true, "", "", "neither a file, a folder nor a symbolic link"},
		"a pipe":                   {packed(t, script, "a pipe"), true, "", "", "neither a file"},
		"twice":                    {packed(t, script, "a x", "a y"), true, "", "", "exists"},
		"no program":               {packed(t, "a x"), true, "", "", "holds no program named racflow-plugin-mine"},
		"not executable":           {packed(t, "racflow-plugin-mine x"), true, "", "", "may not be executed"},
		"no description":           {whole, true, "", "{}", "does not say which version of racflow's protocol"},
		"a faulty description":     {whole, true, "", `{"protocol": 2, "name": "a b"}`, "the plugin's name is"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			about := []byte(c.about)
			if c.about == "" {
				about = description(t)
			}
			hash, err := s.Add("mine", bytes.NewReader(c.layer), c.archive, c.want, about)
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s, %v, want %q", hash, err, c.err)
			}
			if left, err := os.ReadDir(s.dir); err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

// A changed program is installed again. A program that others could have changed is not returned.
func TestChanged(t *testing.T) {
	s := open(t)
	add := func() program.Program {
		t.Helper()
		hash, err := s.Add("mine", strings.NewReader("#!/bin/sh"), false, "", description(t))
		must.Do(t, err)
		p, err := s.Program("mine", hash)
		must.Do(t, err)
		return p
	}
	p := add()
	for range 2 {
		must.Do(t, errors.Join(os.Chmod(p.Path, 0o700), os.WriteFile(p.Path, []byte("#!/bin/sl"), 0o700), os.Chmod(p.Path, 0o500)))
		if _, err := s.Program("mine", p.Hash); err == nil || !strings.Contains(err.Error(), "racflow plugin remove mine") {
			t.Errorf("a changed program: %v", err)
		}
		add()
	}
	must.Do(t, os.Chmod(s.dir, 0o777))
	if _, err := s.Program("mine", p.Hash); err == nil || !strings.Contains(err.Error(), "chmod go-w "+s.dir) {
		t.Errorf("a store for everybody: %v", err)
	}
	add() // removes the permission
	must.Do(t, os.WriteFile(filepath.Join(filepath.Dir(p.Path), "racflow-plugin-other"), nil, 0o500))
	if _, err := s.Program("mine", p.Hash); err == nil || !strings.Contains(err.Error(), "several programs") {
		t.Errorf("two programs: %v", err)
	}
	for _, hash := range []string{"", "sha256:", "sha256:../../x", "tree:" + strings.Repeat("G", 64), "md5:" + strings.Repeat("0", 64)} {
		if _, err := s.Program("mine", hash); err == nil || !strings.Contains(err.Error(), "is not the hash of a program") {
			t.Errorf("%q: %v", hash, err)
		}
	}
}

// Several processes may install the same program at the same time.
func TestAddAtOnce(t *testing.T) {
	s, about := open(t), description(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			hash, err := s.Add("mine", strings.NewReader("#!/bin/sh"), false, "", about)
			if err == nil {
				_, err = s.Program("mine", hash)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if left, err := os.ReadDir(s.dir); err != nil || len(left) != 2 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// A description for another protocol yields only the protocol's version.
func TestAnotherProtocol(t *testing.T) {
	about, protocol, err := decodeDescription([]byte(`{"protocol": 3, "name": 7}`))
	if err != nil || protocol != 3 || about.Name != "" {
		t.Errorf("%+v, %d, %v", about, protocol, err)
	}
}
