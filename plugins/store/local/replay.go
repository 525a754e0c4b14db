package local

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/racflow/racflow/plugins/store/local/internal/integrity"
	"github.com/racflow/racflow/plugins/store/local/internal/segment"
	"github.com/racflow/racflow/plugins/store/local/internal/snapshot"
	"github.com/racflow/racflow/plugins/store/local/internal/wal"
)

// replay returns the version at a log's last commit: empty with everything that the
// log has, or old with what it has behind old's end, if this is old's log.
func (c *collection) replay(f *os.File, empty, old *version) (*version, error) {
	now := empty.State
	changes := snapshot.NewStaged(nil, empty.Analyzer)
	from := int64(wal.HeaderSize)
	if old != nil && old.End > 0 && old.ID == now.ID && old.End <= now.End {
		from, now.Listed = old.End, old.Listed
		changes = snapshot.NewStaged(old.Parts, empty.Analyzer)
	}
	frames := wal.NewFrameReader(f, from, now.End)
	for {
		fr, err := frames.Next()
		if err == io.EOF {
			break
		}
		if err == wal.ErrTorn {
			return nil, integrity.Damage(f.Name(), frames.Offset, "checksum")
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", f.Name(), err)
		}
		if fr.Kind == wal.KindBase {
			base, ok := wal.DecodeBase(fr.Payload)
			if !ok {
				return nil, integrity.Damage(f.Name(), fr.Offset, "unexpected content")
			}
			parts, err := c.openBase(base, now, old)
			if err != nil {
				return nil, err
			}
			now.Listed = pathsOf(parts)
			changes = snapshot.NewStaged(parts, empty.Analyzer)
			continue
		}
		one, ok := wal.DecodeChange(fr, now.Schema.Dimension)
		if !ok {
			return nil, integrity.Damage(f.Name(), fr.Offset, "unexpected content")
		}
		changes.Apply(one)
	}
	parts, err := empty.Append(changes.Parts.Parts, &changes.Rows)
	if err != nil {
		return nil, err
	}
	return c.version(now, empty.With(parts)), nil
}

// errMissing says that a listed file is not there: another log replaced this one and
// the file was removed, or somebody else removed it.
var errMissing = errors.New("a segment is missing")

// openBase returns the parts that a base lists. It takes segments that old has from
// there.
func (c *collection) openBase(base []wal.Listed, now wal.State, old *version) ([]snapshot.Part, error) {
	known := map[uint64]*segment.Segment{}
	if old != nil {
		for i := range old.Parts[:snapshot.Files(old.Parts)] {
			known[old.Parts[i].Name] = old.Parts[i].Segment
		}
	}
	var parts []snapshot.Part
	for _, b := range base {
		path := segment.Path(c.dir, b.Name)
		s, err := known[b.Name], error(nil)
		if s == nil {
			s, err = segment.Open(path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: %s is not there although %s lists it: restore it from a copy, or delete the collection's folder and build the knowledge again",
				errMissing, path, filepath.Base(c.path()))
		}
		if err != nil {
			return nil, err
		}
		p := snapshot.Part{Segment: s, Dead: b.Dead, Removed: int(b.Removed), Words: int64(b.Words), Gone: b.Gone}
		switch {
		case uint64(len(s.Bytes)) != b.Size, uint64(s.Rows) != b.Rows, s.Name != b.Name,
			s.Dimension != now.Schema.Dimension, s.Lexical != (now.Schema.Analyzer != ""):
			return nil, integrity.Damage(path, 0, "it is another segment than the log lists")
		case b.Dead.Count() != p.Removed, !b.Dead.Within(s.Rows), s.Lexical && p.Removed > 0 && len(p.Gone) != s.Terms.Len(), !s.Lexical && p.Gone != nil:
			return nil, integrity.Damage(c.path(), int64(wal.HeaderSize), "unexpected content")
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// pathsOf are the files of parts.
func pathsOf(parts []snapshot.Part) []string {
	paths := make([]string, len(parts))
	for i := range parts {
		paths[i] = parts[i].Path
	}
	return paths
}
