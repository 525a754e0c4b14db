package cache

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"

	"github.com/racflow/racflow/sdk/support"
)

// layout is how the files of a folder are written.
type layout struct {
	magic   string // the first line of each, as text for people
	suffix  string
	groups  bool   // its records are groups
	warning string // what is logged where a file cannot be read to its end
}

var (
	answers = &layout{magic: "racflow cache 1\n", suffix: ".answers",
		warning: "some cached responses are damaged and will be asked for again; racflow cache clear removes them"}
	vectors = &layout{magic: "racflow vectors 1\n", suffix: ".vectors", groups: true,
		warning: "some cached vectors are damaged and will be made again; racflow cache clear vectors removes them"}
)

func (l *layout) newName() string { return fmt.Sprintf("%016x%s", rand.Uint64(), l.suffix) }

// file is one of the cache's files.
type file struct {
	*layout
	path   string
	in     *os.File
	known  int64    // the end of the records that were read
	out    *os.File // for writing; nil: this process only reads it
	broken bool     // what follows known is damaged
	used   bool     // this process has got a value from it
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

// follow calls each with the records appended since the last time.
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

// take makes this process the writer of a file. It reports false if another process writes
// it, or if it is gone or damaged.
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
				_ = os.Remove(f.path) // it is locked, so no other process has begun it
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
func (f *file) begin(out *os.File) error {
	if f.known == 0 { // new, or its first line is incomplete
		if _, err := out.WriteAt([]byte(f.magic), 0); err != nil {
			return err
		}
		f.known = int64(len(f.magic))
	}
	return out.Truncate(f.known)
}

// append writes a record and returns its offset. An incomplete write is undone.
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
