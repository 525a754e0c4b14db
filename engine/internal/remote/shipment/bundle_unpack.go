package shipment

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/plugin"
	"github.com/racflow/racflow/engine/internal/plugin/catalog"
	"github.com/racflow/racflow/engine/internal/plugin/model"
	"github.com/racflow/racflow/engine/internal/plugin/registry"
	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/sdk"
)

// lacks returns sentences about data that was not sent and is missing here.
func (u *unpacking) lacks() (all []string, err error) {
	for _, e := range u.Environment {
		if _, ok := u.place.Getenv(e.Name); e.Set && !ok {
			all = append(all, fmt.Sprintf("the environment has no %s, which the file reads: set it and start the worker again", e.Name))
		}
	}
	for _, s := range u.Stays {
		if _, err := os.Stat(s.Path); err != nil {
			all = append(all, fmt.Sprintf("%s is not here and does not travel, because %s: put it there", s.Path, s.Why))
		}
	}
	for _, m := range u.Models {
		dir, err := u.find(m)
		if err != nil {
			return nil, err
		}
		switch {
		case dir == "" && m.Path == "":
			all = append(all, fmt.Sprintf("model %s is not here: racflow model pull %s", m.Name, m.Name))
		case dir == "":
			all = append(all, fmt.Sprintf("model %s, which the file has as %s, is not here, or has other weights: racflow model pull brings models of hubs; of another, put its folder under this name into one of the worker's folders of models (digest %.12s)", m.Name, m.Path, m.Digest))
		case m.Path != "":
			u.away[m.Path] = dir
		}
	}
	missing, err := u.plugins()
	return append(all, missing...), err
}

// find returns the folder of a model by its name and digest; empty: it is not on this machine.
func (u *unpacking) find(m BundledModel) (string, error) {
	var candidates []string
	if usual, err := sdk.ModelDir(m.Name); err == nil {
		candidates = append(candidates, usual)
	}
	if m.Path != "" {
		candidates = append(candidates, m.Path)
		for _, dir := range u.place.Models {
			candidates = append(candidates, filepath.Join(dir, m.Name), dir)
		}
	}
	for _, dir := range candidates {
		if size, err := model.Size(dir); err != nil || size != m.Size {
			continue // skips reading the folder
		}
		digest, err := model.Digest(dir)
		if err != nil {
			return "", fmt.Errorf("look for model %s: %w", m.Name, err)
		}
		if digest == m.Digest {
			return filepath.Abs(dir)
		}
	}
	return "", nil
}

// plugins returns sentences about missing programs.
func (u *unpacking) plugins() (all []string, err error) {
	if len(u.Plugins) == 0 {
		return nil, nil
	}
	here := u.at(u.File)
	locked, diags := plugin.ReadLock(plugin.LockBeside(here))
	if diags.HasErrors() {
		return nil, fmt.Errorf("the lock cannot be read: %w", diags)
	}
	installed, err := registry.OpenStore("")
	if err != nil {
		return nil, err
	}
	for _, p := range u.Plugins {
		if p.Development {
			found, err := u.development(p)
			if err != nil {
				return nil, err
			}
			if !found {
				all = append(all, fmt.Sprintf("the plugin %q is being developed, and this machine has not the same program: copy its folder here and name it with --plugins, or publish it and lock it with racflow plugin init", p.Name))
			}
			continue
		}
		hash := ""
		if l := locked.Plugin(p.Name); l != nil {
			hash = l.Program()
		}
		if hash == "" {
			all = append(all, fmt.Sprintf("the plugin %q, version %s, has no program for %s/%s", p.Name, p.Version, runtime.GOOS, runtime.GOARCH))
			continue
		}
		if _, err := installed.Program(p.Name, hash); errors.Is(err, registry.ErrMissing) {
			all = append(all, fmt.Sprintf("the plugin %q, version %s, is not installed: racflow plugin init %s", p.Name, p.Version, here))
		} else if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// development reports whether this machine has the same program of a plugin under development.
func (u *unpacking) development(p BundledPlugin) (bool, error) {
	found, err := program.Find(catalog.Folders(u.place.Plugins))
	if err != nil {
		return false, err
	}
	linked, err := program.Links()
	if err != nil {
		return false, err
	}
	for _, have := range append(found, linked...) {
		if have.Name != p.Name {
			continue
		}
		hash, err := have.Check()
		if err != nil || hash == p.Hash {
			return err == nil, err
		}
	}
	return false, nil
}

// BundlePlace is where a worker unpacks bundles.
type BundlePlace struct {
	// State is the state folder for the pipeline. Files are unpacked in the folder bundles below
	// it, which only its owner can read.
	State string
	Kept  KeptFiles // stores files that are objects at the servers

	Models  []string // folders of models in addition to the user's own
	Plugins []string // folders of plugins under development
	Getenv  func(name string) (string, bool)
}

func (b Bundle) digest() string {
	text, _ := json.Marshal(b) // texts, numbers and maps of them always encode
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Unpack writes the files of a bundle, fetches those that are objects, and looks for data that was
// not sent. Open file with the returned options: they have the caller's values, the folders of at,
// and the local paths of everything; the worker sets the rest. A *LacksError lists what is missing
// on this machine.
func (b Bundle) Unpack(ctx context.Context, conn ObjectStore, at BundlePlace) (file string, o engine.Options, err error) {
	state, err := filepath.Abs(at.State)
	if err != nil {
		return "", o, err
	}
	at.State = state
	if at.Getenv == nil {
		at.Getenv = os.LookupEnv
	}
	u := &unpacking{Bundle: b, place: at, dir: filepath.Join(state, "bundles", b.digest()[:16]), away: map[string]string{}}
	if err := disk.MakeBelow(state, u.dir); err != nil {
		return "", o, err
	}
	for _, step := range []func() error{func() error { return u.files(ctx, conn) }, u.sources, u.stores} {
		if err := step(); err != nil {
			return "", o, fmt.Errorf("unpack the file of the run: %w", err)
		}
	}
	lacks, err := u.lacks()
	if err != nil {
		return "", o, err
	}
	if len(lacks) > 0 {
		return "", o, &LacksError{lacks}
	}
	return b.File, engine.Options{
		State: at.State, Plugins: at.Plugins, Dir: b.Dir, Vars: b.Vars, VarFiles: b.VarFiles, Set: b.Set, Pipeline: b.Pipeline,
		Input: b.Input, Columns: b.Columns, KnowledgeColumns: b.KnowledgeColumns, Away: u.at, Getenv: u.getenv,
	}, nil
}

// unpacking is the state of Unpack.
type unpacking struct {
	Bundle
	place BundlePlace
	dir   string            // the folder that it owns
	away  map[string]string // local paths, by the caller's path
}

func (u *unpacking) at(path string) string {
	if here, ok := u.away[path]; ok {
		return here
	}
	return path
}

// getenv returns the values of the worker's environment that the file may use: of the variables RACFLOW_VAR_*
// only those with secrets (the others have the caller's values), and none that the caller lacked.
func (u *unpacking) getenv(name string) (string, bool) {
	variable := strings.HasPrefix(name, "RACFLOW_VAR_")
	for _, e := range u.Environment {
		if e.Name == name && (e.Set || e.Secret) {
			return u.place.Getenv(name)
		}
		variable = variable || e.Name == name
	}
	if variable {
		return "", false
	}
	return u.place.Getenv(name)
}

// files writes the files of the bundle.
func (u *unpacking) files(ctx context.Context, conn ObjectStore) error {
	var large []Shipped
	for _, f := range u.Files {
		name, err := inside(f.Path)
		if err != nil {
			return err
		}
		to := filepath.Join(u.dir, "files", name)
		u.away[f.Path] = to
		if f.large() {
			large = append(large, Shipped{Name: filepath.ToSlash(filepath.Join("files", name)), Digest: f.Digest, Size: f.Size, Fixed: true})
			continue
		}
		if sum := sha256.Sum256(f.Content); hex.EncodeToString(sum[:]) != f.Digest {
			return fmt.Errorf("the content of %s is not that of its digest", f.Path)
		}
		if err := u.write(to, f.Content); err != nil {
			return err
		}
	}
	return u.place.Kept.Get(ctx, conn, large, u.dir)
}

func (u *unpacking) write(to string, content []byte) error {
	if err := disk.MakeBelow(u.dir, filepath.Dir(to)); err != nil {
		return err
	}
	if there, err := os.ReadFile(to); err == nil && bytes.Equal(there, content) {
		return nil
	}
	return disk.WriteFile(to, content, false)
}

// inside converts a caller's path to one relative to a folder of the worker.
func inside(path string) (string, error) {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return "", fmt.Errorf("%q is no path of a file on this kind of system", path)
	}
	volume := filepath.VolumeName(path)
	name := strings.TrimLeft(path[len(volume):], string(filepath.Separator))
	name = filepath.Join(strings.Trim(strings.Map(func(r rune) rune {
		if r == ':' || r == filepath.Separator {
			return -1
		}
		return r
	}, volume), `.?\`), name)
	if !filepath.IsLocal(name) {
		return "", fmt.Errorf("%q is no path of a file", path)
	}
	return name, nil
}

// sources creates empty files and folders in place of the sources of knowledge.
func (u *unpacking) sources() error {
	for _, s := range u.Sources {
		name, err := inside(s.Path)
		if err != nil {
			return err
		}
		to := filepath.Join(u.dir, "sources", name)
		if s.Folder {
			err = disk.MakeBelow(u.dir, to)
		} else {
			err = u.write(to, nil)
		}
		if err != nil {
			return err
		}
		if _, ok := u.away[s.Path]; !ok {
			u.away[s.Path] = to
		}
	}
	return nil
}

// stores maps each folder that a store names to one below the state folder, where shipments are.
func (u *unpacking) stores() error {
	for _, path := range u.Stores {
		u.away[path] = filepath.Join(u.place.State, filepath.FromSlash(engine.StoreFolder(path)))
	}
	return nil
}
