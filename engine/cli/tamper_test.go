package cli

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/plugin"
	"github.com/racflow/racflow/engine/internal/plugin/registry"
	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/sdk"
	folders "github.com/racflow/racflow/sdk/sdktest/must"
)

const tampered = `required_plugins {
  mine = { source = "ghcr.io/acme/racflow-plugin-mine", version = "~> 1.2", write = ["marks"] }
}
knowledge "k" {
  source { path = "rows.tsv" }
  embed { use = "hashing" }
  store { use = "local" }
}
pipeline "p" {
  input { path = "rows.tsv" }
  retrieve "near" { from = knowledge.k }
  sample "words" { use = "mine/words" }
  elect "e" { use = "soft" }
}
`

// installed is a folder with a file that requires a plugin, its lock, and a store with the plugin: a
// program that leaves a mark when it is executed, and a module.
type installed struct {
	dir, mark string
	program   program.Program
	locked    plugin.LockedPlugin
}

func installProgram(t *testing.T) *installed {
	t.Helper()
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	i := &installed{dir: folders.TempDir(t)}
	i.mark = filepath.Join(i.dir, "marks", "executed")
	do(os.Mkdir(filepath.Dir(i.mark), 0o700))
	script := "#!/bin/sh\necho executed >> '" + i.mark + "'\n"
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zipped)
	for name, content := range map[string]string{"racflow-plugin-mine": script, "words.py": "words = 1\n"} {
		do(archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), Mode: 0o755}))
		_, err := archive.Write([]byte(content))
		do(err)
	}
	do(errors.Join(archive.Close(), zipped.Close()))
	description, err := registry.EncodeDescription(sdk.Plugin{Name: "mine", Version: "1.2.3", Stages: []sdk.Stage{
		sdk.SampleStage("words", "Counts words.", func(context.Context, sdk.Setup, struct{}) (sdk.Sampler, error) { return nil, nil }, sdk.Reads(sdk.ColumnText)),
	}})
	do(err)
	s, err := registry.OpenStore(filepath.Join(i.dir, "cache"))
	do(err)
	hash, err := s.Add("mine", &packed, true, "", description)
	do(err)
	i.program, err = s.Program("mine", hash)
	do(err)
	i.locked = plugin.LockedPlugin{
		Name: "mine", Source: "ghcr.io/acme/racflow-plugin-mine", Version: "1.2.3", Constraint: "~> 1.2", Protocol: 2, Digest: "sha256:0",
		Programs: map[string]string{runtime.GOOS + "/" + runtime.GOARCH: hash},
	}
	do(errors.Join(s.Vouch(i.locked, hash), i.lock()))
	writeAll(t, i.dir, map[string]string{"p.hcl": tampered, "rows.tsv": "text\tlabel\na\tb\nc\td\n"})
	for _, name := range []string{"one", "two"} {
		do(os.MkdirAll(filepath.Join(i.dir, name), 0o700))
		do(os.WriteFile(filepath.Join(i.dir, name, "racflow-plugin-mine"), []byte(script), 0o700))
	}
	return i
}

func (i *installed) lock() error {
	return (&plugin.Lock{Plugins: []plugin.LockedPlugin{i.locked}}).Write(filepath.Join(i.dir, plugin.LockName))
}

// write changes a file of the program that nobody may write to.
func (i *installed) write(name, content string, mode fs.FileMode) error {
	path := filepath.Join(i.program.Folder, name)
	return errors.Join(os.Chmod(i.program.Folder, 0o700), os.Remove(path), os.WriteFile(path, []byte(content), mode), os.Chmod(path, mode), os.Chmod(i.program.Folder, 0o500))
}

// If a plugin differs from the lock, or if another user could change it, no verb executes its
// program: the exit code is 1, with a diagnostic where the file uses the plugin.
func TestTampered(t *testing.T) {
	long(t)
	for name, c := range map[string]struct {
		change func(*installed) error
		args   []string
		want   string // empty: the program is executed
	}{
		"as it was locked": {func(*installed) error { return nil }, nil, ""},
		"a byte flipped": {func(i *installed) error {
			return i.write("racflow-plugin-mine", "#!/bin/sh\necho executed >> '"+i.mark+"' \n", 0o500)
		}, nil, "is not the program that was locked"},
		"a changed module": {func(i *installed) error { return i.write("words.py", "words = 2\n", 0o500) }, nil, "is not the program that was locked"},
		"a compiled module": {func(i *installed) error {
			return errors.Join(os.Chmod(i.program.Folder, 0o700), os.Mkdir(filepath.Join(i.program.Folder, "__pycache__"), 0o700))
		}, nil, "was not there when the plugin was installed"},
		"a link out of the folder": {func(i *installed) error {
			return errors.Join(os.Chmod(i.program.Folder, 0o700), os.Remove(filepath.Join(i.program.Folder, "words.py")), os.Symlink("../../../rows.tsv", filepath.Join(i.program.Folder, "words.py")))
		}, nil, "leads out of the plugin's folder"},
		"a link for the program": {func(i *installed) error {
			return errors.Join(os.Chmod(i.program.Folder, 0o700), os.Remove(i.program.Path), os.Symlink("/bin/true", i.program.Path))
		}, nil, "leads out of the plugin's folder"},
		"world-writable":          {func(i *installed) error { return os.Chmod(i.program.Path, 0o577) }, nil, "may be changed by others on this machine"},
		"a world-writable folder": {func(i *installed) error { return os.Chmod(filepath.Dir(i.program.Folder), 0o777) }, nil, "may be changed by others on this machine"},
		"a world-writable store":  {func(i *installed) error { return os.Chmod(filepath.Join(i.dir, "cache"), 0o777) }, nil, "may be changed by others on this machine"},
		"not executable":          {func(i *installed) error { return os.Chmod(i.program.Path, 0o400) }, nil, "may not be executed"},
		"two of one name":         {func(*installed) error { return nil }, []string{"--plugins", "one", "--plugins", "two"}, "several programs of the plugin"},
		"another protocol":        {func(i *installed) error { i.locked.Protocol = 3; return i.lock() }, nil, "speaks version 3 of racflow's protocol"},
		"another source":          {func(i *installed) error { i.locked.Source = "ghcr.io/other/mine"; return i.lock() }, nil, "the file now has the source"},
		"another signer":          {func(i *installed) error { i.locked.Signer = "minisign:RWQ"; return i.lock() }, nil, "is locked as signed by minisign:RWQ, and this machine has not checked that"},
		"another constraint":      {func(i *installed) error { i.locked.Constraint = "~> 1.1"; return i.lock() }, nil, "was chosen by"},
		"another platform": {func(i *installed) error {
			i.locked.Programs = map[string]string{"plan9/386": i.program.Hash}
			return i.lock()
		}, nil, "has no program for"},
		"not locked": {func(i *installed) error { i.locked.Name = "other"; return i.lock() }, nil, "is not locked"},
		"no lock":    {func(i *installed) error { return os.Remove(filepath.Join(i.dir, plugin.LockName)) }, nil, "is not locked"},
		"a lock of another language": {func(i *installed) error {
			return os.WriteFile(filepath.Join(i.dir, plugin.LockName), []byte("{"), 0o600)
		}, nil, "the lock cannot be read"},
		"a hash that is a path": {func(i *installed) error {
			i.locked.Programs = map[string]string{runtime.GOOS + "/" + runtime.GOARCH: "../../one"}
			return i.lock()
		}, nil, "is not the hash of a program"},
		"not installed": {func(i *installed) error {
			return os.Rename(filepath.Dir(i.program.Folder), filepath.Join(i.dir, "elsewhere"))
		}, nil, "is not installed on this machine"},
		"without its description": {func(i *installed) error { return os.Remove(filepath.Dir(i.program.Folder) + ".json") }, nil, "is installed without its description"},
		"in the folder of the user, as before": {func(i *installed) error {
			config := filepath.Join(i.dir, "home", "racflow", "plugins")
			return errors.Join(os.Remove(filepath.Join(i.dir, plugin.LockName)), os.MkdirAll(config, 0o700), os.Rename(filepath.Join(i.dir, "one", "racflow-plugin-mine"), filepath.Join(config, "racflow-plugin-mine")))
		}, nil, "is not locked"},
	} {
		t.Run(name, func(t *testing.T) {
			i := installProgram(t)
			if err := c.change(i); err != nil {
				t.Fatal(err)
			}
			for _, verb := range []string{"validate", "plan", "run"} {
				command := racflow(t, i.dir, append([]string{verb, "p.hcl"}, c.args...)...)
				command.Env = append(os.Environ(), registry.StoreVariable+"="+filepath.Join(i.dir, "cache"), "XDG_CONFIG_HOME="+filepath.Join(i.dir, "home"), "HOME="+filepath.Join(i.dir, "home"))
				out, err := command.CombinedOutput()
				text := strings.Join(strings.Fields(string(out)), " ")
				_, unmarked := os.Stat(i.mark)
				switch {
				case c.want == "" && verb == "validate":
					if err != nil || unmarked == nil {
						t.Errorf("%s: %v, executed %v:\n%s", verb, err, unmarked == nil, out)
					}
				case c.want == "":
					if verb == "run" && unmarked != nil {
						t.Errorf("%s: the program was not executed:\n%s", verb, out)
					}
				case command.ProcessState.ExitCode() != exitFailed || !strings.Contains(text, "Unusable plugin at p.hcl:12:26") || !strings.Contains(text, c.want):
					t.Errorf("%s: %v, want %q:\n%s", verb, err, c.want, out)
				case unmarked == nil:
					t.Errorf("%s: the program was executed:\n%s", verb, out)
				}
			}
		})
	}
}
