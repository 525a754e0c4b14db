package local

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// based is a segment in a file as a log's base frame lists it.
type based struct {
	name, size, rows uint64
	removed          uint64
	words            uint64   // of the living rows
	dead             bitmap   // nil, as gone: nothing was removed
	gone             []uint32 // by word
}

// appendBase encodes the parts that are in files.
func appendBase(b []byte, parts []part) []byte {
	b = le.AppendUint32(b, uint32(len(parts)))
	for i := range parts {
		p := &parts[i]
		for _, x := range [...]uint64{p.name, uint64(len(p.bytes)), uint64(p.segment.rows), uint64(p.removed), uint64(p.words)} {
			b = le.AppendUint64(b, x)
		}
		if p.removed > 0 {
			b = append(b, bytesOf(p.dead)...)
			b = le.AppendUint32(b, uint32(len(p.gone)))
			b = append(b, bytesOf(p.gone)...)
		}
	}
	return b
}

func decodeBase(payload []byte) ([]based, bool) {
	d := decoder{b: payload}
	var all []based
	for range d.uint32() {
		s := based{name: d.uint64(), size: d.uint64(), rows: d.uint64(), removed: d.uint64(), words: d.uint64()}
		if d.short || s.rows > maxRows || s.removed > s.rows {
			return nil, false
		}
		if s.removed > 0 {
			if raw := d.take(8 * len(newBitmap(int(s.rows)))); !d.short {
				s.dead = newBitmap(int(s.rows))
				copy(bytesOf(s.dead), raw)
			}
			if raw := d.take(4 * int(d.uint32())); len(raw) > 0 {
				s.gone = make([]uint32, len(raw)/4)
				copy(bytesOf(s.gone), raw)
			}
		}
		if d.short {
			return nil, false
		}
		all = append(all, s)
	}
	return all, len(d.b) == 0
}

// errMissing says that a file that a log lists is not there: another log took
// the place of that one and the file was removed, or somebody else removed it.
var errMissing = errors.New("a segment is missing")

// openBase returns the parts that a base lists. Segments that old has are not
// opened again.
func (c *collection) openBase(listed []based, now state, old *snapshot) ([]part, error) {
	known := map[uint64]*segment{}
	if old != nil {
		for i := range old.parts[:filesOf(old.parts)] {
			known[old.parts[i].name] = old.parts[i].segment
		}
	}
	var parts []part
	for _, b := range listed {
		path := segmentPath(c.dir, b.name)
		s, err := known[b.name], error(nil)
		if s == nil {
			s, err = openSegment(path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: %s is not there although %s lists it: restore it from a copy, or delete the collection's folder and build the knowledge again",
				errMissing, path, filepath.Base(c.path()))
		}
		if err != nil {
			return nil, err
		}
		p := part{segment: s, dead: b.dead, removed: int(b.removed), words: int64(b.words), gone: b.gone}
		switch {
		case uint64(len(s.bytes)) != b.size, uint64(s.rows) != b.rows, s.name != b.name,
			s.dimension != now.schema.Dimension, s.lexical != (now.schema.Analyzer != ""):
			return nil, &damaged{path, 0, "it is another segment than the log lists"}
		case b.dead.count() != p.removed, !b.dead.within(s.rows), s.lexical && p.removed > 0 && len(p.gone) != s.terms.len(), !s.lexical && p.gone != nil:
			return nil, &damaged{c.path(), int64(headerSize), "unexpected content"}
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// pathsOf are the files of parts.
func pathsOf(parts []part) []string {
	paths := make([]string, len(parts))
	for i := range parts {
		paths[i] = parts[i].path
	}
	return paths
}
