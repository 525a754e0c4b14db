package model

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// place is where a model is put together, beside the folder that it will have. Their names begin
// with a dot, so none is the name of a model.
type place struct {
	name   string
	dir    string // of the model
	work   string // what has arrived so far; it stays where a pull fails, for the next one
	old    string // the model that is being replaced
	unlock func()
}

// open locks the place, so that one process at a time brings a model of that name or removes it.
func open(name string) (*place, error) {
	dir, err := sdk.ModelDir(name)
	if err != nil {
		return nil, err
	}
	beside := func(what string) string { return filepath.Join(filepath.Dir(dir), "."+name+what) }
	p := &place{name: name, dir: dir, work: beside(".pull"), old: beside(".old"), unlock: func() {}}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil { // #nosec G301 -- models are for all users of the machine
		return nil, err
	}
	held, err := support.OpenLock(beside(".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	switch {
	case err == nil:
		p.unlock = func() { _ = errors.Join(os.Remove(held.Name()), held.Close()) } // the lock ends with the process at the latest
	case errors.Is(err, support.ErrBusy):
		return nil, fmt.Errorf("another process is pulling or removing %s: try again when it is done", name)
	case !errors.Is(err, errors.ErrUnsupported):
		return nil, err
	}
	if err := p.recover(); err != nil {
		p.unlock()
		return nil, err
	}
	return p, nil
}

// recover puts a model back that a process left between the two steps of replace.
func (p *place) recover() error {
	if _, err := os.Lstat(p.dir); !errors.Is(err, fs.ErrNotExist) {
		return os.RemoveAll(p.old)
	}
	if err := os.Rename(p.old, p.dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// files is the folder that becomes the model's.
func (p *place) files() string { return filepath.Join(p.work, "files") }

// file is where a file arrives, and where it is kept whose content it is.
func (p *place) file(name string) (path, state string, _ error) {
	local := filepath.FromSlash(name)
	if !filepath.IsLocal(local) {
		return "", "", fmt.Errorf("%q is outside of the model's folder", name)
	}
	path, state = filepath.Join(p.files(), local), filepath.Join(p.work, "state", local)
	return path, state, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.MkdirAll(filepath.Dir(state), 0o755)) // #nosec G301 -- as above
}

// replace makes what has arrived the model. It removes what the record does not name: files that
// an earlier pull of something else left.
func (p *place) replace(r *Record) error {
	err := filepath.WalkDir(p.files(), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(p.files(), path)
		if err == nil && !slices.ContainsFunc(r.Files, func(f RecordedFile) bool { return filepath.FromSlash(f.Path) == name }) {
			err = os.Remove(path)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := r.write(p.files()); err != nil {
		return err
	}
	if err := os.Rename(p.dir, p.old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(p.files(), p.dir); err != nil {
		return errors.Join(err, p.recover())
	}
	return errors.Join(os.RemoveAll(p.old), os.RemoveAll(p.work))
}

// Remove removes a model, and what an unfinished pull of it left.
func Remove(name string) error {
	p, err := open(name)
	if err != nil {
		return err
	}
	defer p.unlock()
	_, model := os.Lstat(p.dir)
	_, work := os.Lstat(p.work)
	if model != nil && work != nil {
		return fmt.Errorf("%s is not on this machine; racflow model list shows what is", name)
	}
	return errors.Join(os.RemoveAll(p.dir), os.RemoveAll(p.work))
}

// Installed returns the names of the models on this machine, whole or not, in order.
func Installed() ([]string, error) {
	any, err := sdk.ModelDir("any")
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(filepath.Dir(any))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		info, statErr := os.Stat(filepath.Join(filepath.Dir(any), e.Name())) // a link is followed
		if statErr == nil && info.IsDir() && sdk.ModelName.MatchString(e.Name()) && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names, err
}
