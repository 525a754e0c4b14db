package program

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/racflow/racflow/engine/private"
)

// link is what is kept of a linked program.
type link struct {
	Path    string `json:"path"`
	Folder  string `json:"folder,omitempty"`
	Project string `json:"project"`
	Hash    string `json:"hash"`
}

// links is the folder with a file NAME.json for each linked program.
func links() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("find the folder of plugins that are being written: %w", err)
	}
	return filepath.Join(dir, "racflow", "plugins"), nil
}

// Link makes a program known to the person's own racflow, as it is now, in place of another of
// its name. It is started for as long as it stays as it is.
func Link(p Program) error {
	p.Hash, p.Origin = "", Linked
	hash, err := p.Check()
	if err != nil {
		return err
	}
	dir, err := links()
	if err != nil {
		return err
	}
	raw, err := json.MarshalIndent(link{p.Path, p.Folder, p.Project, hash}, "", "  ")
	if err != nil {
		return err
	}
	if err := private.MakeFolder(dir); err != nil {
		return err
	}
	return private.WriteFile(filepath.Join(dir, p.Name+".json"), append(raw, '\n'), false)
}

// Links lists the linked programs by name.
func Links() ([]Program, error) {
	dir, err := links()
	if err != nil {
		return nil, nil //nolint:nilerr // a user without a home has linked none
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look for plugins: %w", err)
	}
	var all []Program
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || !e.Type().IsRegular() {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("look for plugins: %w", err)
		}
		var l link
		if err := json.Unmarshal(raw, &l); err != nil || !filepath.IsAbs(l.Path) || l.Hash == "" {
			return nil, fmt.Errorf("%s does not say which plugin is installed: remove the file, and install the plugin again with racflow plugin install FOLDER --dev", filepath.Join(dir, e.Name()))
		}
		all = append(all, Program{Name: name, Path: l.Path, Folder: l.Folder, Hash: l.Hash, Origin: Linked, Project: l.Project})
	}
	return all, nil
}

// Unlink forgets a linked program. The error is fs.ErrNotExist where none has the name.
func Unlink(name string) error {
	dir, err := links()
	if err != nil {
		return err
	}
	return os.Remove(filepath.Join(dir, filepath.Base(name)+".json"))
}
