package cache

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// layout says how the files of a folder are written.
type layout struct {
	magic   string // first line of each file, readable for people
	suffix  string
	uses    bool   // the time of a file says when it was last used
	warning string // logged if a file cannot be read to its end
}

var (
	answers = &layout{magic: "racflow cache 1\n", suffix: ".answers",
		warning: "some cached responses are damaged and will be asked for again; racflow cache clear removes them"}
	vectors = &layout{magic: "racflow vectors 2\n", suffix: ".vectors", uses: true,
		warning: "some cached vectors are damaged and will be made again; racflow cache clear vectors removes them"}
)

func (l *layout) newName() string { return strings.ToLower(rand.Text()) + l.suffix }

// file is one of the cache's files.
type file struct {
	*layout
	path   string
	in     *os.File
	known  int64         // end of the records read so far
	out    *support.File // for writing; nil: this process only reads the file
	broken bool          // damaged after known
	used   bool          // this process has read a value from it
}

func (l *layout) openFile(path string) (*file, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return &file{layout: l, path: path, in: in}, nil
}

func (f *file) close() error {
	err := f.in.Close()
	if f.out != nil {
		err = errors.Join(err, f.out.Close())
	}
	return err
}

// follow calls each with the records appended since the last call.
func (f *file) follow(each func(record)) error {
	info, err := f.in.Stat()
	if err != nil || info.Size() <= f.known {
		return err
	}
	f.known, err = f.scan(f.in, f.path, f.known, info.Size(), each)
	var d *damage
	f.broken = errors.As(err, &d)
	return err
}

// take makes this process the writer of a file. It returns false if a process (this one included)
// already writes the file, or if the file is missing or damaged.
func (f *file) take(each func(record)) (bool, error) {
	if f.out != nil || f.broken {
		return false, nil
	}
	out, err := support.OpenLock(f.path, os.O_RDWR, 0)
	if errors.Is(err, support.ErrBusy) || errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	same, err := support.SameFile(f.path, f.in)
	if err == nil && same {
		if err = f.follow(each); err == nil {
			if err = f.begin(out); err != nil && f.known == 0 {
				_ = os.Remove(f.path) // the file is locked, so no other process has begun it
			}
		}
	}
	if err != nil || !same {
		return false, errors.Join(err, out.Close())
	}
	f.out = out
	return true, nil
}

// begin prepares the file for writing after its last complete record.
func (f *file) begin(out *support.File) error {
	if f.known == 0 { // new, or with an incomplete first line
		if _, err := out.WriteAt([]byte(f.magic), 0); err != nil {
			return err
		}
		f.known = int64(len(f.magic))
	}
	return out.Truncate(f.known)
}

// append writes a record and returns its offset. It undoes an incomplete write.
func (f *file) append(b []byte) (int64, error) {
	start := f.known
	if _, err := f.out.WriteAt(b, start); err != nil {
		if undo := f.out.Truncate(start); undo != nil {
			f.broken = true
			err = errors.Join(err, undo)
		}
		return 0, err
	}
	f.known += int64(len(b))
	return start, nil
}

// takeFile takes a file for writing: a file that nobody writes, or a new one.
func (c *Cache) takeFile() error {
	if err := disk.MakeFolder(c.dir); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.readNew(); err != nil {
		return err
	}
	for {
		for _, name := range slices.Sorted(maps.Keys(c.files)) {
			path := c.files[name].path
			if ok, err := c.take(name); err != nil {
				c.report(path, err)
			} else if ok {
				return nil
			}
		}
		// If another process takes the new file first, create another.
		if ok, err := c.takeNew(); err != nil || ok {
			return err
		}
	}
}

// takeNew creates a file and takes it. If that fails, as on a full disk, it removes the file:
// otherwise every later response would leave a file behind.
func (c *Cache) takeNew() (bool, error) {
	name := c.layout.newName()
	path := filepath.Join(c.dir, name)
	f, err := support.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, disk.FileMode)
	if err != nil {
		return false, err
	}
	if err = f.Close(); err == nil {
		err = c.follow(name)
	}
	ok := false
	if err == nil {
		ok, err = c.take(name)
	}
	if err != nil {
		_ = os.Remove(path) // take has usually done so
	}
	return ok, err
}

// take makes a file the one that this process writes. It returns false if another process writes
// the file, or if the file is missing, full or damaged.
func (c *Cache) take(name string) (bool, error) {
	f := c.files[name]
	if f == nil || c.segment > 0 && f.known >= c.segment {
		return false, nil // cleared meanwhile, or full
	}
	ok, err := f.take(c.adder(f))
	switch {
	case ok:
		c.own = f
	case err != nil && f.known == 0 && !f.broken: // the file is empty, so nothing is lost
		delete(c.files, name)
		err = errors.Join(err, f.close())
	}
	return ok, err
}

// A file begins with the magic of its format. Records follow, each a header and a value. Numbers
// are little-endian.
//
//	 0  4  CRC-32C of the rest of the header
//	 4  4  length of the value
//	 8  4  CRC-32C of the value
//	12  8  time of writing, in nanoseconds since 1970
//	20 32  key
//	52 44  short description, padded with zeros
const (
	headerSize = 96
	aboutAt    = 52
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// record is the header of a value and its place.
type record struct {
	key    sdk.Key
	at     int64 // time of writing, in nanoseconds since 1970
	about  string
	offset int64 // of the value
	length uint32
	sum    uint32 // CRC-32C of the value
}

func (r record) end() int64 { return r.offset + int64(r.length) }

// begin returns the offset of the header.
func (r record) begin() int64 { return r.offset - headerSize }

// append appends the bytes of a record to others.
func (r record) append(to, value []byte) []byte {
	b := make([]byte, headerSize)
	binary.LittleEndian.PutUint32(b[4:], r.length)
	binary.LittleEndian.PutUint32(b[8:], r.sum)
	binary.LittleEndian.PutUint64(b[12:], uint64(r.at))
	copy(b[20:], r.key[:])
	copy(b[aboutAt:], r.about) // copy cuts it to the field
	binary.LittleEndian.PutUint32(b, crc32.Checksum(b[4:], castagnoli))
	return append(append(to, b...), value...)
}

// damage says that the content of a file is not what was written.
type damage struct {
	path   string
	offset int64
	what   string
}

func (d *damage) Error() string {
	return fmt.Sprintf("%s is damaged at byte %d (%s)", d.path, d.offset, d.what)
}

// scan calls each with the complete records of a file of the given size, starting at an offset. It
// returns the offset of the next record. An incomplete record ends the scan without an error; any
// other mismatch is damage. scan reads no values.
func (l *layout) scan(f io.ReaderAt, path string, from, size int64, each func(record)) (int64, error) {
	if from == 0 {
		head := make([]byte, min(size, int64(len(l.magic))))
		if _, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if string(head) != l.magic[:len(head)] {
			return 0, &damage{path, 0, "not a file of this cache, or one of a newer racflow"}
		}
		if len(head) < len(l.magic) {
			return 0, nil // incomplete first line
		}
		from = int64(len(l.magic))
	}
	in := bufio.NewReaderSize(io.NewSectionReader(f, from, size-from), 64<<10)
	header := make([]byte, headerSize)
	for size-from >= headerSize {
		if _, err := io.ReadFull(in, header); err != nil {
			return from, cutOff(err)
		}
		r := record{
			length: binary.LittleEndian.Uint32(header[4:]), sum: binary.LittleEndian.Uint32(header[8:]),
			at: int64(binary.LittleEndian.Uint64(header[12:])), key: sdk.Key(header[20:aboutAt]),
			about: string(bytes.TrimRight(header[aboutAt:], "\x00")), offset: from + headerSize,
		}
		if crc32.Checksum(header[4:], castagnoli) != binary.LittleEndian.Uint32(header) {
			return from, &damage{path, from, "a wrong checksum"}
		}
		if r.end() > size {
			break
		}
		if _, err := in.Discard(int(r.length)); err != nil {
			return from, cutOff(err)
		}
		each(r)
		from = r.end()
	}
	return from, nil
}

// cutOff ignores an unexpected end of a file that was truncated in the meantime.
func cutOff(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// read reads a record's value and checks its checksum.
func (r record) read(f io.ReaderAt, path string) ([]byte, error) {
	value := make([]byte, r.length)
	if n, err := f.ReadAt(value, r.offset); n < len(value) {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if crc32.Checksum(value, castagnoli) != r.sum {
		return nil, &damage{path, r.offset, "a wrong checksum"}
	}
	return value, nil
}
