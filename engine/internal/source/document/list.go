package document

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/text/unicode/norm"

	"github.com/racflow/racflow/engine/internal/process/disk"
)

// MaxBytes is the most bytes of a file if a Set gives no limit.
const MaxBytes = 20 << 20

// Version changes when files yield other texts or titles than before.
const Version = 6

// Set selects the files that are documents.
type Set struct {
	Path    string   `identity:"knowledge"` // a folder, a glob such as docs/**/*.md, or a file
	Exclude []string `identity:"knowledge"` // globs below the folder; one without a slash matches names at any depth
	Max     int64    `identity:"knowledge"` // most bytes of a file; 0: MaxBytes
	HTML    string   `identity:"knowledge"` // part of a page to read: "readable" (or empty) or "all"
}

// File is a file that should be a document.
type File struct {
	ID   string // path below the folder, with slashes
	Hash []byte // of its content, 16 bytes
	Size int64  // of its content, in bytes
	Err  error  // not nil: the file is unusable
}

// Folder is an open Set. It reads nothing outside the folder.
type Folder struct {
	set   Set
	path  string
	root  *os.Root
	match string // glob of the documents; empty: all
	only  string // the only file of the set; empty: all files of the folder
}

// Is reports whether a path certainly names documents: a folder, a glob, or a file with the suffix of a
// document, such as Markdown, HTML, PDF, docx or source code, but not a workbook.
func Is(path string) bool {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return true
	case err == nil:
		return formatOf(path) != formatText && !IsWorkbook(path)
	}
	return IsGlob(path)
}

// May reports whether a path names a file that could be a document, whatever its suffix.
func May(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// IsWorkbook reports whether a file has the suffix of a workbook. Its sheets may be a document or rows.
func IsWorkbook(path string) bool { return formatOf(path) == formatXLSX }

// IsGlob reports whether a path is a pattern.
func IsGlob(path string) bool { return disk.IsGlob(path) }

// Check returns an error for a malformed glob.
func Check(glob string) error {
	if !doublestar.ValidatePattern(filepath.ToSlash(glob)) {
		return fmt.Errorf("%q is not a glob: a bracket or a brace is open", glob)
	}
	return disk.CheckGlob(glob)
}

// Open opens the folder of a set.
func Open(s Set) (*Folder, error) {
	if s.Max == 0 {
		s.Max = MaxBytes
	}
	f := &Folder{set: s}
	base := s.Path
	if info, err := os.Stat(s.Path); err == nil && !info.IsDir() {
		base, f.only = filepath.Split(s.Path)
		base = filepath.Clean(base)
	} else if err != nil {
		base, f.match = disk.SplitGlob(s.Path)
		f.match = norm.NFC.String(f.match)
	}
	var err error
	f.path = base
	f.root, err = os.OpenRoot(f.path)
	return f, err
}

// Path returns the folder to which ids of documents are relative.
func (f *Folder) Path() string { return f.path }

// Close closes the folder, and ends the idle reading process.
func (f *Folder) Close() error {
	idle.Swap(nil).end()
	return f.root.Close()
}

// List returns all documents, sorted by folder and name.
func (f *Folder) List(ctx context.Context) ([]File, error) {
	return f.list(ctx, func(id string, _ fs.FileInfo) File { return f.hash(id) })
}

// Stamp returns a digest of the names, sizes and times of all documents. It detects changes quickly,
// without opening a file.
func (f *Folder) Stamp(ctx context.Context) (string, error) {
	stamp := sha256.New()
	files, err := f.list(ctx, func(id string, info fs.FileInfo) File {
		fmt.Fprintf(stamp, "%q %d %d\n", id, info.Size(), info.ModTime().UnixNano())
		return File{}
	})
	for _, file := range files {
		if file.Err != nil {
			fmt.Fprintf(stamp, "%q %v\n", file.ID, file.Err)
		}
	}
	return hex.EncodeToString(stamp.Sum(nil)), err
}

func (f *Folder) list(ctx context.Context, look func(id string, info fs.FileInfo) File) ([]File, error) {
	var files []File
	reject := func(id string, err error) {
		files = append(files, File{ID: strings.ToValidUTF8(id, "\uFFFD"), Err: err})
	}
	err := fs.WalkDir(f.root.FS(), cmp.Or(f.only, "."), func(id string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case id == "." && err != nil:
			return err
		case id == ".":
			return nil
		case (strings.HasPrefix(path.Base(id), ".") || disk.IsLock(id)) && id != f.only || f.excluded(id):
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case err != nil && id == f.only:
			reject(id, fmt.Errorf("%w; a link is followed within its folder only", plain(err)))
			return nil
		case err != nil:
			reject(id, plain(err))
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir() || !f.matches(id):
			return nil
		}
		info, err := f.root.Stat(id)
		if d.Type()&fs.ModeSymlink != 0 && (err != nil || info.IsDir()) {
			return nil //nolint:nilerr // it leads nowhere, outside, or to a folder
		}
		switch {
		case err != nil:
			reject(id, plain(err))
		case !info.Mode().IsRegular():
			reject(id, errSpecial)
		case !utf8.ValidString(id):
			reject(id, errors.New("its name is not valid UTF-8"))
		case info.Size() > f.set.Max:
			reject(id, f.tooLarge())
		default:
			if file := look(id, info); file.Err == nil {
				files = append(files, file)
			} else {
				reject(id, plain(file.Err))
			}
		}
		return nil
	})
	return files, err
}

func (f *Folder) matches(id string) bool {
	return f.match == "" || doublestar.MatchUnvalidated(f.match, norm.NFC.String(id))
}

func (f *Folder) excluded(id string) bool {
	id = norm.NFC.String(id)
	for _, glob := range f.set.Exclude {
		if doublestar.MatchUnvalidated(glob, id) || !strings.Contains(glob, "/") && doublestar.MatchUnvalidated(glob, path.Base(id)) {
			return true
		}
	}
	return false
}

func (f *Folder) hash(id string) File {
	in, err := f.open(id)
	if err != nil {
		return File{Err: err}
	}
	defer in.Close() //nolint:errcheck // it was only read
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(in, f.set.Max+1))
	if err != nil {
		return File{Err: err}
	}
	if n > f.set.Max { // the file is growing
		return File{Err: f.tooLarge()}
	}
	return File{ID: id, Hash: h.Sum(nil)[:hashBytes], Size: n}
}

// open opens a file. It does not block if the file has become a pipe since the listing.
func (f *Folder) open(id string) (*os.File, error) {
	in, err := f.root.OpenFile(filepath.FromSlash(id), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := in.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(cmp.Or(err, errSpecial), in.Close())
	}
	return in, nil
}

var errSpecial = errors.New("it is a pipe, a socket or a device, not a regular file; leave it out with exclude")

const hashBytes = 16

func (f *Folder) tooLarge() error {
	return fmt.Errorf("it is larger than %d bytes; raise max_bytes or leave it out with exclude", f.set.Max)
}

// plain removes the path from an error: a File has its own.
func plain(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
