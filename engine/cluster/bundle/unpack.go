package bundle

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/cluster/ship"
	"github.com/racflow/racflow/engine/private"
)

// Place is where a worker unpacks bundles.
type Place struct {
	// State is the state folder that the pipeline is opened with; files are unpacked in the folder
	// bundles below it, private to its owner.
	State string
	Kept  ship.Kept // of files that come as objects

	Models  []string // folders of models beside the user's own
	Plugins []string // folders of plugins that are being developed
	Getenv  func(name string) (string, bool)
}

func (b Bundle) digest() string {
	text, _ := json.Marshal(b) // texts, numbers and maps of them always encode
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Unpack writes the files of a bundle, loads those that are objects, and looks for what did not
// travel. file is what is to be opened with the options, which have what the caller's had, the
// folders of Place, and where everything lies here; the rest is the worker's to fill in. A
// *LacksError says what is not on this machine.
func (b Bundle) Unpack(ctx context.Context, conn ship.Objects, at Place) (file string, o engine.Options, err error) {
	state, err := filepath.Abs(at.State)
	if err != nil {
		return "", o, err
	}
	at.State = state
	if at.Getenv == nil {
		at.Getenv = os.LookupEnv
	}
	u := &unpacking{Bundle: b, place: at, dir: filepath.Join(state, "bundles", b.digest()[:16]), away: map[string]string{}}
	if err := private.MakeBelow(state, u.dir); err != nil {
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

// unpacking is the work on one bundle.
type unpacking struct {
	Bundle
	place Place
	dir   string            // that it owns
	away  map[string]string // where something lies, by the caller's path
}

func (u *unpacking) at(path string) string {
	if here, ok := u.away[path]; ok {
		return here
	}
	return path
}

// getenv is what the file finds of the worker's environment: of variables of the file only those that hold a
// secret, since the others have the caller's values, and nothing that the caller did without.
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

// files writes the files that have travelled.
func (u *unpacking) files(ctx context.Context, conn ship.Objects) error {
	var large []ship.Shipped
	for _, f := range u.Files {
		name, err := inside(f.Path)
		if err != nil {
			return err
		}
		to := filepath.Join(u.dir, "files", name)
		u.away[f.Path] = to
		if f.large() {
			large = append(large, ship.Shipped{Name: filepath.ToSlash(filepath.Join("files", name)), Digest: f.Digest, Size: f.Size, Fixed: true})
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
	if err := private.MakeBelow(u.dir, filepath.Dir(to)); err != nil {
		return err
	}
	if there, err := os.ReadFile(to); err == nil && bytes.Equal(there, content) {
		return nil
	}
	return private.WriteFile(to, content, false)
}

// inside is a caller's path as one below a folder of the worker's.
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

// sources makes empty files and folders that say what the sources of knowledge are.
func (u *unpacking) sources() error {
	for _, s := range u.Sources {
		name, err := inside(s.Path)
		if err != nil {
			return err
		}
		to := filepath.Join(u.dir, "sources", name)
		if s.Folder {
			err = private.MakeBelow(u.dir, to)
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

// stores puts the folders that stores name below the state folder, where shipments lie.
func (u *unpacking) stores() error {
	for _, path := range u.Stores {
		u.away[path] = filepath.Join(u.place.State, filepath.FromSlash(engine.StoreFolder(path)))
	}
	return nil
}
