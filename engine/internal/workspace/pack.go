package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge/generation"
	"github.com/racflow/racflow/engine/internal/plugin/registry"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/internal/source/document"
	"github.com/racflow/racflow/sdk"
)

// Packed describes the folder that Pack has made.
type Packed struct {
	Dir     string   // the folder to work in, below the folder: the counterpart of the current working directory, if there is one
	File    string   // the pipeline file, relative to Dir
	Files   []string // the files on which answers depend, below the folder, sorted
	Models  []string // names of models, in the folder PackedModels; empty: none are needed
	Plugins []string // names of locked plugins, in the folder PackedPlugins
	Left    []string // paths of unpacked files, such as keys for connections; sorted
	Bytes   int64    // of all files in the folder
}

// PackedModels and PackedPlugins are the folders of models and of plugins, below Packed.Dir.
const (
	PackedModels  = DefaultState + "/models"
	PackedPlugins = DefaultState + "/plugins"
)

// packing copies a pipeline into a folder.
type packing struct {
	*Pipeline
	to     string // absolute
	root   string // the nearest folder that holds all files; files keep their paths relative to it
	packed Packed
}

// Pack copies everything that answers need into the folder to, which is new or empty. It copies the file, the files
// that it depends on, its knowledge, what its voters have learned, its plugins and its models. Pack first brings the
// knowledge up to date, and finally opens the copy, so that nothing has to be built elsewhere. Files keep their paths
// relative to each other. Values of variables, secrets, and the certificates and keys of connections are not packed.
func (p *Pipeline) Pack(ctx context.Context, to string) (Packed, error) {
	at, err := filepath.Abs(to)
	if err != nil {
		return Packed{}, err
	}
	if inside, err := os.ReadDir(at); err == nil && len(inside) > 0 {
		return Packed{}, fmt.Errorf("%s is not empty: name a new folder", to)
	}
	started, err := p.Start(ctx)
	if err != nil {
		return Packed{}, err
	}
	k := &packing{Pipeline: p, to: at}
	k.packed.Left = k.connections()
	files, err := k.files(ctx)
	if err != nil {
		return Packed{}, err
	}
	for _, step := range []func() error{
		func() error { return k.place(files) },
		func() error { return k.state(started.Generations()) },
		k.models,
		k.plugins,
		func() error { return k.settle(ctx, started.Generations()) },
		k.measure,
	} {
		if err := step(); err != nil {
			return Packed{}, fmt.Errorf("pack into %s: %w", to, err)
		}
	}
	return k.packed, nil
}

// files returns the absolute paths of the files that the pipeline depends on; the first is its own.
func (k *packing) files(ctx context.Context) ([]string, error) {
	var all, rows []string
	var folders []document.Set
	for _, one := range k.file.Pipelines { // the file cannot be loaded without the files that its other pipelines name
		files, more, documents := (&Pipeline{workspace: k.workspace, file: k.file, chosen: one}).Depends()
		all, rows, folders = append(all, files...), append(rows, more...), append(folders, documents...)
		if one.Input != nil {
			rows = append(rows, one.Input.Path)
		}
	}
	for _, path := range rows {
		if found, err := source.Files(path); err == nil { // there may be no decisions yet
			all = append(all, found...)
		}
	}
	for _, set := range folders {
		found, err := documents(ctx, set)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	for _, s := range k.started() {
		for _, path := range s.Paths() { // Depends omits folders, such as folders of models
			found, err := regular(path)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	seen := map[string]bool{}
	for _, path := range k.connections() {
		seen[path] = true
	}
	kept := all[:0]
	for _, path := range all {
		at, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(at); err == nil && !seen[at] {
			seen[at] = true
			kept = append(kept, at)
		}
	}
	return kept, nil
}

// started returns the stages of the pipeline and of its knowledge.
func (k *packing) started() []*pipeline.Stage {
	all := slices.Collect(maps.Values(k.stages()))
	for _, block := range k.chosen.Knowledge() {
		all = append(all, block.Stages()...)
	}
	return all
}

// connections returns the paths of arguments that do not change results, such as keys of clients, sorted.
func (k *packing) connections() (all []string) {
	for _, s := range k.started() {
		for _, a := range s.Info.Arguments {
			if a.OutputUnaffected && !s.Is("local") { // whose argument is the folder with the knowledge
				all = append(all, pipeline.PathsIn([]sdk.Argument{a}, s.Config.Public)...)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// documents returns the paths of the files of a set.
func documents(ctx context.Context, set document.Set) ([]string, error) {
	folder, err := document.Open(set)
	if err != nil {
		return nil, err
	}
	defer folder.Close() //nolint:errcheck // only read: no data can be lost
	files, err := folder.List(ctx)
	var all []string
	for _, f := range files {
		if f.Err == nil {
			all = append(all, filepath.Join(folder.Path(), filepath.FromSlash(f.ID)))
		}
	}
	return all, err
}

// regular returns the regular files below a path, or the path itself if it is a regular file.
func regular(path string) (all []string, err error) {
	err = filepath.WalkDir(path, func(at string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Stat(at) // follows links: caches of models are folders of links
		if err == nil && info.Mode().IsRegular() {
			all = append(all, at)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return all, err
}

// place copies the files to their places below the nearest folder that holds all of them. The first file is the
// pipeline's own.
func (k *packing) place(files []string) error {
	k.root = filepath.Dir(files[0])
	for _, path := range files {
		for !filepath.IsLocal(relative(k.root, path)) {
			k.root = filepath.Dir(k.root)
		}
	}
	if k.root == filepath.Dir(k.root) {
		return fmt.Errorf("the files %s have no folder in common but %s: put them into one", strings.Join(files, ", "), k.root)
	}
	here, err := filepath.Abs(k.workspace.options.Dir)
	if err != nil {
		return err
	}
	if !filepath.IsLocal(relative(k.root, here)) {
		here = filepath.Dir(files[0])
	}
	k.packed.Dir = relative(k.root, here)
	k.packed.File = relative(here, files[0])
	for _, path := range files {
		if err := copyFile(path, filepath.Join(k.to, relative(k.root, path))); err != nil {
			return err
		}
		k.packed.Files = append(k.packed.Files, relative(k.root, path))
	}
	slices.Sort(k.packed.Files)
	return nil
}

// relative is filepath.Rel for absolute paths.
func relative(base, path string) string {
	rel, err := filepath.Rel(base, path)
	if err != nil { // on another volume
		return path
	}
	return rel
}

// state copies the pipeline's and its knowledge's parts of the state folder.
func (k *packing) state(all []run.Generation) error {
	inside := []string{filepath.Join("stages", k.chosen.Name)}
	for _, g := range all {
		inside = append(append(inside, filepath.Join("stages", g.Name)), foldersOf(g)...)
	}
	for _, folder := range inside {
		if err := copyFolder(filepath.Join(k.workspace.state, folder), filepath.Join(k.to, k.packed.Dir, DefaultState, folder)); err != nil {
			return err
		}
	}
	return nil
}

// models copies the models that stages take from the user's folder of models. A stage names its model in an argument,
// or has a model of its own.
func (k *packing) models() error {
	for _, s := range k.started() {
		for _, path := range append(s.Paths(), s.Use) {
			name := filepath.Base(path)
			dir, err := sdk.ModelDir(name)
			if _, missing := os.Stat(dir); err != nil || missing != nil || slices.Contains(k.packed.Models, name) {
				continue
			}
			if _, err := os.Stat(path); err == nil { // a folder that the file names takes precedence
				continue
			}
			if err := copyFolder(dir, filepath.Join(k.to, k.packed.Dir, PackedModels, name)); err != nil {
				return err
			}
			k.packed.Models = append(k.packed.Models, name)
		}
	}
	slices.Sort(k.packed.Models)
	return nil
}

// plugins copies the locked plugins.
func (k *packing) plugins() error {
	for _, p := range k.chosen.Programs() {
		if p.Development() {
			return fmt.Errorf("the plugin %q is in development, and only locked ones can be packed: publish it, and run racflow plugin init", p.Name)
		}
		store, err := registry.OpenStore("")
		if err != nil {
			return err
		}
		if err := store.CopyTo(filepath.Join(k.to, k.packed.Dir, PackedPlugins), p.Hash); err != nil {
			return err
		}
		k.packed.Plugins = append(k.packed.Plugins, p.Name)
	}
	return nil
}

// copyFolder copies a folder, if it exists. It copies the targets of links.
func copyFolder(from, to string) error {
	all, err := regular(from)
	for _, path := range all {
		if err == nil {
			err = copyFile(path, filepath.Join(to, relative(from, path)))
		}
	}
	return err
}

func copyFile(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // only read: no data can be lost
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// settle opens the copy, which rebuilds what depends on its location, and removes unused parts. It returns an error if
// the copy would read a file elsewhere.
func (k *packing) settle(ctx context.Context, was []run.Generation) error {
	if len(k.packed.Left) > 0 {
		return nil // the copy cannot connect without them
	}
	o := k.workspace.options
	o.Dir, o.State, o.Cache, o.Input, o.Trust = filepath.Join(k.to, k.packed.Dir), filepath.Join(k.to, k.packed.Dir, DefaultState), cmp.Or(o.Cache, k.workspace.state), "", nil
	o.Events.Knowledge = nil // already reported
	copied, err := Open(ctx, filepath.Join(k.to, k.packed.Dir, k.packed.File), o)
	if err != nil {
		return err
	}
	defer copied.Close()
	files, err := (&packing{Pipeline: copied}).files(ctx)
	if err != nil {
		return err
	}
	for _, path := range files {
		if !filepath.IsLocal(relative(k.to, path)) {
			return fmt.Errorf("%s is named by its absolute path: name it relative to the pipeline file, or by a variable", path)
		}
	}
	started, err := copied.Start(ctx)
	if err != nil {
		return err
	}
	for i, now := range started.Generations() {
		if now.Collection == was[i].Collection {
			continue
		}
		for _, folder := range foldersOf(was[i]) {
			if err := os.RemoveAll(filepath.Join(o.State, folder)); err != nil {
				return err
			}
		}
	}
	return nil
}

// measure adds up the sizes of the files in the folder.
func (k *packing) measure() error {
	return filepath.WalkDir(k.to, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			k.packed.Bytes += info.Size()
		}
		return err
	})
}

// foldersOf returns the folders, below a state folder, of an index version and of what was learned from it.
func foldersOf(g run.Generation) []string {
	knowledge := filepath.Join("knowledge", g.Name)
	return []string{filepath.Join(knowledge, g.Collection), filepath.Join(knowledge, generation.Centroids(g.Collection)), filepath.Join("fitted", g.Collection)}
}
