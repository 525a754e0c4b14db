package bundle

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/racflow/racflow/engine/catalog"
	"github.com/racflow/racflow/engine/model"
	"github.com/racflow/racflow/engine/plugin/lock"
	"github.com/racflow/racflow/engine/plugin/store"
	"github.com/racflow/racflow/engine/program"
	"github.com/racflow/racflow/sdk"
)

// lacks are sentences about what did not travel and is not here.
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
			all = append(all, fmt.Sprintf("model %s, which the file has as %s, is not here, or has other weights: racflow model pull brings models of hubs; of another, put its folder into one of the worker's folders of models (digest %.12s)", m.Name, m.Path, m.Digest))
		case m.Path != "":
			u.away[m.Path] = dir
		}
	}
	missing, err := u.plugins()
	return append(all, missing...), err
}

// find returns the folder of a model by its digest; empty: it is not on this machine.
func (u *unpacking) find(m Model) (string, error) {
	usual, err := sdk.ModelDir(m.Name)
	var candidates []string
	if err == nil {
		candidates = append(candidates, usual)
	}
	if m.Path != "" {
		candidates = append(candidates, m.Path)
		for _, dir := range u.place.Models {
			candidates = append(candidates, filepath.Join(dir, m.Name), dir)
			candidates = append(candidates, folders(dir)...)
		}
		if err == nil {
			candidates = append(candidates, folders(filepath.Dir(usual))...)
		}
	}
	var seen []string
	for _, dir := range candidates {
		if slices.Contains(seen, dir) {
			continue
		}
		seen = append(seen, dir)
		if size, err := model.Size(dir); err != nil || size != m.Size {
			continue // so that others need not be read
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

func folders(dir string) (all []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			all = append(all, path)
		}
	}
	return all
}

// plugins are sentences about programs that are not here.
func (u *unpacking) plugins() (all []string, err error) {
	if len(u.Plugins) == 0 {
		return nil, nil
	}
	here := u.at(u.File)
	locked, diags := lock.Read(lock.Beside(here))
	if diags.HasErrors() {
		return nil, fmt.Errorf("the lock cannot be read: %w", diags)
	}
	installed, err := store.Open("")
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
		if _, err := installed.Program(p.Name, hash); errors.Is(err, store.ErrMissing) {
			all = append(all, fmt.Sprintf("the plugin %q, version %s, is not installed: racflow plugin init %s", p.Name, p.Version, here))
		} else if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// development reports whether this machine has the same program of a plugin that is being developed.
func (u *unpacking) development(p Plugin) (bool, error) {
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
