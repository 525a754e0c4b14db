package cache

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// Stats counts the content of a cache.
type Stats struct {
	Entries int     `json:"entries"` // keys with a value
	Bytes   int64   `json:"bytes"`   // of all files
	Files   int     `json:"files"`
	About   []About `json:"about"`             // by description of the entries, sorted
	Damaged []error `json:"-"`                 // errors of files that cannot be read to their end
	Damages int     `json:"damaged,omitempty"` // number of damaged files
}

// About counts the entries of one description.
type About struct {
	About   string    `json:"about"`
	Entries int       `json:"entries"`
	Bytes   int64     `json:"bytes"`  // of the values
	Oldest  time.Time `json:"oldest"` // when the oldest entry was stored
	Newest  time.Time `json:"newest"`
}

// ReadStats counts the response cache in a folder. A folder that does not exist is empty.
func ReadStats(dir string) (Stats, error) {
	return answers.stats(dir)
}

// ReadVectorStats counts the vectors of all embedders in a folder.
func ReadVectorStats(root string) (Stats, error) {
	return vectors.stats(embedders(root)...)
}

// stats counts the entries of folders. The same key in two folders counts as two entries.
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

// read collects the newest record of each key in a folder.
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
			_ = f.close() // no error matters: it was only read
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

// Cleared says what Clear or a trim removed.
type Cleared struct {
	Records int   // removed records, including replaced ones
	Bytes   int64 // freed bytes
	Busy    int   // skipped files, since a running process writes them
}

// Clear removes responses that were stored before a time. Processes that have the cache open still read the
// records that they have indexed.
func Clear(dir string, before time.Time) (Cleared, error) {
	var c Cleared
	paths, err := answers.list(dir)
	errs := []error{err}
	for _, path := range paths {
		errs = append(errs, c.clear(answers, path, before))
	}
	return c, errors.Join(errs...)
}

// clear removes records of a file that were stored before a time, unless a process writes the file.
func (c *Cleared) clear(l *layout, path string, before time.Time) error {
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
	defer out.Close()           // releases the lock; no error matters, since it was only read
	_ = os.Remove(path + draft) // left by an interrupted process; usually there is none
	info, err := out.Stat()
	if err != nil {
		return err
	}
	var stay []record
	removed := 0
	_, err = l.scan(out, path, 0, info.Size(), func(r record) {
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
	size, err := l.rewrite(out, path, stay)
	if err != nil {
		return fmt.Errorf("rewrite %s: %w", path, err)
	}
	c.Records, c.Bytes = c.Records+removed, c.Bytes+info.Size()-size
	return nil
}

// draft is the suffix of a file that will replace another.
const draft = ".new"

// rewrite replaces a file by one with only the given records, under another name, so that processes that
// have read the old file notice the change. The caller holds the file's lock.
func (l *layout) rewrite(f *support.File, path string, records []record) (size int64, err error) {
	out, err := support.OpenFile(path+draft, os.O_RDWR|os.O_CREATE|os.O_TRUNC, disk.FileMode)
	if err != nil {
		return 0, err
	}
	w := bufio.NewWriterSize(out, 256<<10)
	_, err = w.WriteString(l.magic)
	size = int64(len(l.magic))
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
		err = out.Sync() // the records that the file replaces may be on the disk already
	}
	if err = errors.Join(err, out.Close()); err == nil {
		err = support.Rename(path+draft, filepath.Join(filepath.Dir(path), l.newName()))
	}
	if err != nil {
		return 0, errors.Join(err, os.Remove(path+draft))
	}
	return size, os.Remove(path)
}

// Limits bounds a cache; 0: no bound.
type Limits struct {
	Bytes int64         // of all files
	Age   time.Duration // since a value was stored or, for vectors, used
}

// before returns the time of the oldest record that Age allows.
func (l Limits) before() time.Time {
	if l.Age <= 0 {
		return time.Unix(0, math.MinInt64)
	}
	return time.Now().Add(-l.Age)
}

// Trim removes records from the response cache in a folder: records that are too old and, if the rest is
// too large, the oldest of the rest. It then leaves a tenth of the limit free, since each trim rewrites
// files. It skips files that a running process writes.
func Trim(dir string, l Limits) (Cleared, error) {
	before := l.before()
	paths, err := answers.list(dir)
	if err != nil || len(paths) == 0 {
		return Cleared{}, err
	}
	if sizeOf(paths) > l.Bytes && l.Bytes > 0 {
		if at := time.Unix(0, stays(paths, l.Bytes-l.Bytes/10)); at.After(before) {
			before = at
		}
	} else if l.Age <= 0 {
		return Cleared{}, nil
	}
	return Clear(dir, before)
}

// stays returns a time. Records from that time on fit into room bytes, so they stay.
func stays(paths []string, room int64) int64 {
	var records []record
	for _, path := range paths {
		if f, err := answers.openFile(path); err == nil {
			_ = f.follow(func(r record) { records = append(records, record{at: r.at, length: r.length}) }) // up to damage
			_ = f.close()                                                                                  // no error matters: it was only read
		}
	}
	slices.SortFunc(records, func(a, b record) int { return cmp.Compare(b.at, a.at) })
	for _, r := range records {
		if room -= headerSize + int64(r.length); room < 0 {
			return r.at + 1
		}
	}
	return math.MinInt64
}

func sizeOf(paths []string) (size int64) {
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			size += info.Size()
		}
	}
	return size
}

// TrimVectors removes vectors of all embedders below a folder: files that no build has written or read for
// too long and, if the rest is too large, the least recently used files. It skips files that a running
// process writes.
func TrimVectors(root string, l Limits) (Cleared, error) {
	type segment struct {
		path string
		size int64
		used time.Time
	}
	var c Cleared
	var all []segment
	var errs []error
	size := int64(0)
	for _, dir := range embedders(root) {
		paths, err := vectors.list(dir)
		errs = append(errs, err)
		for _, path := range paths {
			info, err := os.Stat(path)
			if errors.Is(err, fs.ErrNotExist) {
				continue // another process has removed it
			}
			if err != nil {
				errs = append(errs, err)
				continue
			}
			all, size = append(all, segment{path, info.Size(), info.ModTime()}), size+info.Size()
		}
	}
	slices.SortFunc(all, func(a, b segment) int { return a.used.Compare(b.used) })
	before := l.before()
	for _, s := range all {
		if (l.Bytes <= 0 || size <= l.Bytes) && !s.used.Before(before) && !outdated(s.path) {
			continue
		}
		busy := c.Busy
		err := c.clear(vectors, s.path, forever)
		if errs = append(errs, err); err == nil && c.Busy == busy {
			size -= s.size
		}
	}
	return c, errors.Join(errs...)
}

// forever is later than all times.
var forever = time.Unix(0, math.MaxInt64)

// outdated reports whether an older racflow wrote a file of vectors, which nobody reads any more.
func outdated(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // it was only read
	const magic = "racflow vectors 1\n"
	head := make([]byte, len(magic))
	n, _ := io.ReadFull(f, head)
	return string(head[:n]) == magic
}
