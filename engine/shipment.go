package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/knowledge/attached"
)

// ShipFile is a file that another machine needs below its state folder to do the same work.
type ShipFile struct {
	Name  string // below the state folder, with slashes
	Path  string // where it lies now
	Fixed bool   // whoever has it never changes it, so that it may be linked
}

// Shipment is what a worker needs of the state folder: the generations that the pipeline searches, of
// stores that keep them in folders; what stages learnt from them; samples of collections that
// somebody else makes; and what is known of the models that are asked. The files are those of the
// first call, and stay as they are until the workspace is closed, whoever writes to the stores
// meanwhile. A generation that another process has changed between the start of the pipeline and
// that call is an error.
func (p *Pipeline) Shipment() ([]ShipFile, error) {
	p.shipping.Lock()
	defer p.shipping.Unlock()
	if p.shipped == nil {
		files, err := p.ship()
		if err != nil {
			return nil, err
		}
		p.shipped = files
	}
	return slices.Clone(p.shipped), nil
}

func (p *Pipeline) ship() ([]ShipFile, error) {
	ctx := p.workspace.ctx
	r, err := p.Start(ctx)
	if err != nil {
		return nil, err
	}
	s, err := p.newShipment()
	if err != nil {
		return nil, err
	}
	blocks, learnt := p.chosen.Knowledge(), map[string]bool{}
	for _, id := range r.Graph().Identities() {
		learnt[id.Learnt] = true
	}
	delete(learnt, "")
	for i, k := range r.Graph().Knowledge() {
		block := blocks[i]
		switch collection, content := k.Generation(); {
		case k.Attached():
			err = s.sample(attached.Kept(p.workspace.samples(), block))
		case !block.Store.Info.Network:
			err = s.collections(block, collection, content)
		}
		if err != nil {
			return nil, fmt.Errorf("knowledge %q: take it to other machines: %w", block.Name, err)
		}
		from, _, _ := k.Learnt()
		for name := range learnt {
			if err := s.folder(path.Join("fitted", from, name), filepath.Join(p.workspace.fitted(), from, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("what stages learnt from knowledge %q: %w", block.Name, err)
			}
		}
	}
	if err := s.models(ctx, p); err != nil {
		return nil, err
	}
	slices.SortFunc(s.files, func(a, b ShipFile) int { return strings.Compare(a.Name, b.Name) })
	return append([]ShipFile{}, s.files...), nil // which is not nil: it was taken
}
