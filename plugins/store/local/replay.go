package local

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// replay returns the snapshot at a log's last commit: empty with everything that
// the log has, or old with what it has behind old's end, if this is old's log.
func (c *collection) replay(f *os.File, empty, old *snapshot) (*snapshot, error) {
	now := empty.state
	var parts []part
	from := int64(headerSize)
	if old != nil && old.end > 0 && old.id == now.id && old.end <= now.end {
		parts, from, now.listed = old.parts, old.end, old.listed
	}
	var changes []change
	frames := newFrameReader(f, from, now.end)
	for {
		fr, err := frames.next()
		if err == io.EOF {
			break
		}
		if err == errTorn {
			return nil, &damaged{f.Name(), frames.offset, "checksum"}
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", f.Name(), err)
		}
		if fr.kind == kindBase {
			listed, ok := decodeBase(fr.payload)
			if !ok {
				return nil, &damaged{f.Name(), fr.offset, "unexpected content"}
			}
			if parts, err = c.openBase(listed, now, old); err != nil {
				return nil, err
			}
			now.listed = pathsOf(parts)
			continue
		}
		one, ok := decodeChange(fr.kind, fr.payload, now.schema.Dimension)
		if !ok {
			return nil, &damaged{f.Name(), fr.offset, "unexpected content"}
		}
		changes = append(changes, one)
	}
	parts, err := empty.apply(parts, changes)
	if err != nil {
		return nil, err
	}
	return empty.with(now, parts), nil
}

// apply returns the parts that come of changes: rows that they put are in a new
// one, in memory.
func (s *snapshot) apply(parts []part, changes []change) ([]part, error) {
	if len(changes) == 0 {
		return parts, nil
	}
	var rows draft
	removed := newRemover(parts, s.analyzer)
	for _, one := range changes {
		for _, id := range one.delete {
			delete(rows.place, id)
			removed.remove(id)
		}
		if one.put != nil {
			for _, r := range one.put.rows {
				removed.remove(r.id)
			}
			rows.add(one.put, s.schema.Dimension)
		}
	}
	return s.append(removed.parts, &rows)
}

// append returns the parts and the rows of a draft in memory behind them, merged
// where it is time.
func (s *snapshot) append(parts []part, rows *draft) ([]part, error) {
	if len(rows.place) > 0 {
		fresh, err := s.inMemory([]input{{source: rows.source(s.analyzer)}})
		if err != nil {
			return nil, err
		}
		parts = append(parts, memoryPart(fresh))
	}
	return s.settle(parts)
}

// inMemory builds a segment in memory.
func (s *snapshot) inMemory(inputs []input) (*segment, error) {
	var m memory
	if err := build(newImageWriter(&m), 0, s.schema.Dimension, s.analyzer != nil, inputs); err != nil {
		return nil, err
	}
	made, err := newSegment(aligned(m.bytes), "")
	if err != nil {
		return nil, errors.Join(errors.New("a segment in memory cannot be read back"), err)
	}
	return made, nil
}
