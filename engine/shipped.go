package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/racflow/racflow/engine/governor"
	"github.com/racflow/racflow/engine/knowledge/folder"
	"github.com/racflow/racflow/engine/knowledge/generation"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/plan"
	"github.com/racflow/racflow/engine/private"
	"github.com/racflow/racflow/sdk"
)

// shipmentsFolder is where files lie below the state folder while they are taken to other machines.
const shipmentsFolder = "shipments"

// abandoned is how old the files of a shipment are that a process has left which was killed.
const abandoned = 24 * time.Hour

// shipment is a set of files that stay as they are.
type shipment struct {
	dir   string // of links and copies of what others may change
	files []ShipFile
}

// newShipment makes an empty shipment, which is there until the workspace is closed.
func (p *Pipeline) newShipment() (*shipment, error) {
	w := p.workspace
	root := filepath.Join(w.state, shipmentsFolder)
	if err := private.MakeBelow(w.state, root); err != nil {
		return nil, err
	}
	entries, _ := os.ReadDir(root)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > abandoned {
			_ = os.RemoveAll(filepath.Join(root, e.Name()))
		}
	}
	dir, err := os.MkdirTemp(root, "") // with the rights of its owner alone
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shipments = append(w.shipments, dir)
	return &shipment{dir: dir}, nil
}

// StoreFolder names the folder below a worker's state folder, with slashes, where the collections of a
// store are that keeps them in a folder which the pipeline file names.
func StoreFolder(path string) string {
	sum := sha256.Sum256([]byte(path))
	return "stores/" + hex.EncodeToString(sum[:8])
}

// PathsOf are the paths that arguments of a stage name, absolute, as the file has them.
func PathsOf(s *pipeline.Stage) []string { return pathsIn(s.Info.Arguments, s.Config.Public) }

// StorePaths are the folders that the config of a store names; none: it keeps its collections in the state folder, or on a server.
func StorePaths(store *pipeline.Stage) (folders []string) {
	if store.Info.Network {
		return nil
	}
	for _, path := range PathsOf(store) {
		if info, err := os.Stat(path); err != nil || info.IsDir() { // a folder that is not there is made
			folders = append(folders, path)
		}
	}
	return folders
}

// collections adds a generation and the centroids of its labels; of a store that nobody knows, all
// that its folders hold.
func (s *shipment) collections(block *pipeline.Knowledge, collection, content string) error {
	name, dir := path.Join("knowledge", block.Name), filepath.Join(filepath.Dir(filepath.Dir(s.dir)), "knowledge", block.Name)
	named := StorePaths(block.Store)
	if len(named) > 0 {
		name, dir = StoreFolder(named[0]), named[0]
	}
	note, err := s.collection(name, dir, collection)
	switch {
	case errors.Is(err, folder.ErrForeign) || errors.Is(err, fs.ErrNotExist) && (block.Store.Use != "local" || block.Store.Program != nil):
		if err = s.folder(name, dir); errors.Is(err, fs.ErrNotExist) && len(named) == 0 {
			return nil // it keeps nothing in a folder
		}
		return err
	case err != nil:
		return err
	}
	if n, ok := generation.ReadNote(note); !ok || n.Content() != content {
		return fmt.Errorf("another process has changed generation %s since this run began: run it again", collection)
	}
	_, err = s.collection(name, dir, generation.Centroids(collection))
	return err
}

// collection adds one of the store local.
func (s *shipment) collection(name, dir, collection string) (note []byte, err error) {
	inside := folder.Name(collection)
	name = path.Join(name, inside)
	to := filepath.Join(s.dir, filepath.FromSlash(name))
	if err := private.MakeBelow(s.dir, filepath.Dir(to)); err != nil {
		return nil, err
	}
	c, err := folder.Copy(filepath.Join(dir, inside), to)
	if err != nil {
		return nil, err
	}
	for _, f := range c.Segments {
		s.files = append(s.files, ShipFile{Name: path.Join(name, f.Name), Path: filepath.Join(to, f.Name), Fixed: true})
	}
	s.files = append(s.files, ShipFile{Name: path.Join(name, folder.LogName), Path: filepath.Join(to, folder.LogName)})
	return c.Note, nil
}

// folder adds all files of a folder, which whoever has it may change.
func (s *shipment) folder(name, dir string) error {
	return filepath.WalkDir(dir, func(at string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		inside, err := filepath.Rel(dir, at)
		if err != nil {
			return err
		}
		s.files = append(s.files, ShipFile{Name: path.Join(name, filepath.ToSlash(inside)), Path: at})
		return nil
	})
}

// models adds what is known of the models that the pipeline asks.
func (s *shipment) models(ctx context.Context, p *Pipeline) error {
	profiles := p.workspace.options.Services.known()
	if profiles == nil {
		return nil
	}
	looker := governor.New(ctx, governor.Options{Mode: governor.Offline, Log: slog.New(slog.DiscardHandler)})
	seen := map[string]bool{}
	for _, a := range plan.Askings(p.chosen) {
		if a.Stage.Program != nil {
			continue
		}
		err := p.models(ctx, a, looker.Stage(governor.Stage{Name: a.Name}), func(m sdk.Model) error {
			file, err := profiles.File(m.Endpoint(), m.Name())
			if errors.Is(err, fs.ErrNotExist) || err == nil && seen[file] { // nothing is known yet, or another stage asks it
				return nil
			} else if err != nil {
				return err
			}
			seen[file] = true
			to := filepath.Join(s.dir, filepath.Base(file))
			s.files = append(s.files, ShipFile{Name: path.Join(ProfilesFolder, filepath.Base(file)), Path: to})
			return folder.Link(file, to)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sample adds the files of a sample, each of which is replaced whole when it is read again.
func (s *shipment) sample(files []string) error {
	for _, file := range files {
		to := filepath.Join(s.dir, filepath.Base(file))
		if err := folder.Link(file, to); err != nil {
			return err
		}
		s.files = append(s.files, ShipFile{Name: path.Join("attached", filepath.Base(file)), Path: to, Fixed: true})
	}
	return nil
}
