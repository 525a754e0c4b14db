package cache

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/private"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// Stats say what a cache holds.
type Stats struct {
	Entries int     `json:"entries"` // keys with a value
	Bytes   int64   `json:"bytes"`   // of all files
	Files   int     `json:"files"`
	Hits    int64   `json:"hits"`              // how often values were used again
	About   []About `json:"about"`             // by the entries' descriptions, in their order
	Damaged []error `json:"-"`                 // files that cannot be read to their end
	Damages int     `json:"damaged,omitempty"` // how many these are
}

// About counts the entries with one description.
type About struct {
	About   string    `json:"about"`
	Entries int       `json:"entries"`
	Bytes   int64     `json:"bytes"`  // of the values
	Oldest  time.Time `json:"oldest"` // when the first of them was stored
	Newest  time.Time `json:"newest"`
}

// ReadStats reads what the response cache in a folder holds. A folder that is not there
// holds nothing.
func ReadStats(dir string) (Stats, error) {
	s, err := answers.stats(dir)
	s.Hits = readHits(dir)
	return s, err
}

// ReadVectorStats reads what vectors of all embedders there are in a folder.
func ReadVectorStats(root string) (Stats, error) {
	s, err := vectors.stats(embedders(root)...)
	s.Hits = readHits(root)
	return s, err
}

// stats counts the entries of folders: the same key in two of them is two entries.
func (l *layout) stats(dirs ...string) (s Stats, err error) {
	by := map[string]*About{}
	for _, dir := range dirs {
		newest := map[sdk.Key]record{}
		err = errors.Join(err, l.read(dir, &s, newest))
		for _, r := range newest {
			s.add(by, r)
		}
	}
	for _, a := range by {
		s.About = append(s.About, *a)
	}
	slices.SortFunc(s.About, func(a, b About) int { return cmp.Compare(a.About, b.About) })
	return s, err
}

// add counts an entry.
func (s *Stats) add(by map[string]*About, r record) {
	at := time.Unix(0, r.at).UTC()
	a := by[r.about]
	if a == nil {
		a = &About{About: r.about, Oldest: at}
		by[r.about] = a
	}
	s.Entries++
	a.Entries++
	a.Bytes += int64(r.length)
	if at.After(a.Newest) {
		a.Newest = at
	}
	if at.Before(a.Oldest) {
		a.Oldest = at
	}
}

// read finds the newest record of each key in a folder.
func (l *layout) read(dir string, s *Stats, newest map[sdk.Key]record) error {
	paths, err := l.list(dir)
	for _, path := range paths {
		f, err := l.openFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = f.follow(func(r record) {
				if r.at >= newest[r.key].at {
					newest[r.key] = r
				}
			})
			if info, err := f.in.Stat(); err == nil {
				s.Bytes += info.Size()
			}
			s.Files++
			_ = f.close() // it was only read
		}
		if err != nil {
			s.Damages++
			s.Damaged = append(s.Damaged, err)
		}
	}
	return err
}

// list returns the paths of a folder's files.
func (l *layout) list(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var paths []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), l.suffix) {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths, err
}

// Cleared says what Clear has done.
type Cleared struct {
	Records int   // that were removed, also those that later ones had replaced
	Bytes   int64 // that became free
	Busy    int   // files that a running process writes: they stay
}

// Clear removes what was put into the response cache before a time. Processes that have the cache open still read
// what they have found.
func Clear(dir string, before time.Time) (Cleared, error) {
	var c Cleared
	paths, err := answers.list(dir)
	errs := []error{err}
	for _, path := range paths {
		errs = append(errs, c.clear(path, before))
	}
	if left, err := answers.list(dir); err == nil && len(left) == 0 {
		forgetHits(dir)
		forgetCopied(dir)
	}
	return c, errors.Join(errs...)
}

func (c *Cleared) clear(path string, before time.Time) error {
	out, err := support.OpenLock(path, os.O_RDWR, 0)
	switch {
	case errors.Is(err, support.ErrBusy):
		c.Busy++
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	defer out.Close()           // it was only read; this gives the lock back
	_ = os.Remove(path + draft) // of one that was cut off; mostly there is none
	info, err := out.Stat()
	if err != nil {
		return err
	}
	var stay []record
	removed := 0
	_, err = answers.scan(out, path, 0, info.Size(), func(r record) {
		if r.at < before.UnixNano() {
			removed++
		} else {
			stay = append(stay, r)
		}
	})
	var d *damage
	if err != nil && !errors.As(err, &d) {
		return err
	}
	if len(stay) == 0 {
		if err := os.Remove(path); err != nil {
			return err
		}
		c.Records, c.Bytes = c.Records+removed, c.Bytes+info.Size()
		return nil
	}
	if removed == 0 {
		return nil
	}
	size, err := rewrite(out, path, stay)
	if err != nil {
		return fmt.Errorf("rewrite %s: %w", path, err)
	}
	c.Records, c.Bytes = c.Records+removed, c.Bytes+info.Size()-size
	return nil
}

// draft is the suffix of a file that will replace another.
const draft = ".new"

// rewrite replaces a file by one with some of its records, under another name, so that
// processes that have read the old file notice it. The caller holds the file's lock.
func rewrite(f *os.File, path string, records []record) (size int64, err error) {
	out, err := os.OpenFile(path+draft, os.O_RDWR|os.O_CREATE|os.O_TRUNC, private.FileMode)
	if err != nil {
		return 0, err
	}
	w := bufio.NewWriterSize(out, 256<<10)
	_, err = w.WriteString(answers.magic)
	size = int64(len(answers.magic))
	for _, r := range records {
		if err == nil {
			var n int64
			n, err = io.Copy(w, io.NewSectionReader(f, r.begin(), r.end()-r.begin()))
			size += n
		}
	}
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = out.Sync() // what it replaces may be on the disk already
	}
	if err = errors.Join(err, out.Close()); err == nil {
		err = os.Rename(path+draft, filepath.Join(filepath.Dir(path), answers.newName()))
	}
	if err != nil {
		return 0, errors.Join(err, os.Remove(path+draft))
	}
	return size, os.Remove(path)
}
