package flat

import (
	"context"
	"slices"

	"github.com/racflow/racflow/sdk"
)

// pageBytes bounds the texts and vectors of a page of Scan, so that it fits into a message.
const pageBytes = 16 << 20

// part returns as much of an entry as is asked for.
func part(e sdk.Entry, texts, vectors bool) sdk.Entry {
	if !texts {
		e.Text, e.Context, e.Meta = "", "", nil
	}
	if !vectors {
		e.Vector = nil
	}
	return e
}

// Get implements sdk.Store.
func (s *store) Get(_ context.Context, name string, ids []string) ([]sdk.Entry, error) {
	c, err := s.opened(name)
	if err != nil {
		return nil, err
	}
	v, all := c.version(), make([]sdk.Entry, len(ids))
	for i, id := range ids {
		if at, ok := v.find(id); ok {
			all[i] = part(v.Entries[at], true, false)
		}
	}
	return all, nil
}

// Scan implements sdk.Store. The order is that of the ids.
func (s *store) Scan(_ context.Context, name string, scan sdk.Scan) (sdk.Page, error) {
	c, err := s.opened(name)
	if err != nil {
		return sdk.Page{}, err
	}
	v, page, size := c.version(), sdk.Page{}, 0
	at, found := v.find(scan.After)
	if found {
		at++
	}
	for ; at < len(v.Entries); at++ {
		e := v.Entries[at]
		if len(scan.Labels) > 0 && !slices.Contains(scan.Labels, e.Label) {
			continue
		}
		if n := len(page.Entries); n > 0 && (n == scan.Limit || size > pageBytes) {
			page.Next = page.Entries[n-1].ID
			break
		}
		e = part(e, scan.Texts, scan.Vectors)
		size += len(e.ID) + len(e.Text) + len(e.Context) + len(e.Label) + 4*len(e.Vector) + 64
		for key, value := range e.Meta {
			text, _ := value.(string)
			size += len(key) + len(text) + 16
		}
		page.Entries = append(page.Entries, e)
	}
	return page, nil
}
