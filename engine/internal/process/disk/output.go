package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/racflow/racflow/sdk/support"
)

// This file writes files atomically: other programs see either the old or the new file.
//
// The new content of FILE goes to FILE.part in the same folder, under a lock. FILE.part is renamed
// to FILE once it is complete; until then FILE stays unchanged, and a second writer is refused
// before it does any work. A process that is killed leaves FILE.part, but no lock: the next writer
// of FILE can see that it is there and overwrites it. After the replacement, both the content and
// the name of FILE are on the disk.
//
// A replaced FILE keeps its permissions. If FILE is a symbolic link, its target is replaced.
// Standard output, pipes and devices are written directly.
//
// The package does not know what it writes; the caller decides when the content is complete.

// suffix ends the name of an incomplete file.
const suffix = ".part"

// Output is a file or a stream that is being written.
type Output struct {
	name      string // as the caller passed it
	target    string // the file to replace; "": a stream
	file      *support.File
	stdout    io.Writer // used instead of file
	left      int64     // bytes that an earlier process left in the partial file
	written   bool
	committed bool
}

// BusyError says that another process, or another OpenOutput of this process, is writing a file.
type BusyError struct{ Name string }

func (e *BusyError) Error() string {
	return fmt.Sprintf("another process is writing %s: wait until it has ended, or choose another file", e.Name)
}

// OpenOutput prepares writing to a file, but does not change the file yet. The name -, or one that
// leads to standard output, writes to stdout. OpenOutput refuses a file that another process is
// writing, a file that cannot be replaced, and a file that is one of inputs.
func OpenOutput(name string, stdout io.Writer, inputs ...string) (*Output, error) {
	if name == "" || IsStdout(name, stdout) {
		return &Output{stdout: stdout}, nil
	}
	target, stream, err := resolve(name)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be written: %w", name, err)
	}
	if stream {
		file, err := support.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return nil, err
		}
		return &Output{name: name, file: file}, nil
	}
	for _, path := range []string{target, target + suffix} {
		if isOneOf(path, inputs) {
			return nil, fmt.Errorf("output %s would write over what this run reads; choose another file", name)
		}
	}
	f := &Output{name: name, target: target}
	if err := f.claim(); err != nil {
		return nil, err
	}
	return f, nil
}

// claim opens and locks the partial file.
func (f *Output) claim() error {
	part := f.target + suffix
	before, err := os.Stat(f.target)
	if err == nil {
		// A user who may not write a file should not replace it either.
		var old *os.File
		if old, err = os.OpenFile(f.target, os.O_WRONLY, 0); err != nil {
			return fmt.Errorf("%s cannot be written: %w; choose another file", f.name, err)
		}
		_ = old.Close() // nothing was written
	}
	if info, err := os.Lstat(part); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s cannot be written: %s is in the way; remove it, or choose another file", f.name, part)
	}
	f.file, err = support.OpenLock(part, os.O_WRONLY|os.O_CREATE, 0o666)
	switch {
	case errors.Is(err, support.ErrBusy):
		return &BusyError{f.name}
	case errors.Is(err, support.ErrNoLocks):
		return fmt.Errorf("%s cannot be written: %w", f.name, err)
	}
	if err == nil {
		if f.left, err = prepare(f.file, before); err != nil {
			_ = f.file.Close() // the first error is the one to report
		}
	}
	if err != nil {
		return fmt.Errorf("%s cannot be written, since it is written to %s first: %w; choose a folder that you can write to, or send results to standard output", f.name, part, err)
	}
	return nil
}

// prepare gives a partial file the permissions of the file that it replaces, if that exists, and
// returns the partial file's size.
func prepare(f *support.File, before os.FileInfo) (size int64, err error) {
	info, err := f.Stat()
	if err == nil && before != nil && info.Mode().Perm() != before.Mode().Perm() {
		err = f.Chmod(before.Mode().Perm())
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Write implements io.Writer.
func (f *Output) Write(b []byte) (int, error) {
	if f.stdout != nil {
		return f.stdout.Write(b)
	}
	if !f.written {
		if err := f.begin(); err != nil {
			return 0, err
		}
	}
	return f.file.Write(b)
}

// begin removes what an earlier process left in the partial file.
func (f *Output) begin() error {
	f.written = true
	if f.target == "" {
		return nil
	}
	return f.file.Truncate(0)
}

// Name returns the name passed to OpenOutput; "": standard output.
func (f *Output) Name() string { return f.name }

// Target returns the absolute path of the file to replace; "": the output is a stream.
func (f *Output) Target() string {
	if f.target == "" {
		return ""
	}
	return absolute(f.target)
}

// Left returns the size of the partial file when OpenOutput opened it: an earlier process left it
// incomplete.
func (f *Output) Left() int64 { return f.left }

// Part returns the name of the partial file, whether it exists or not; "": the output is a stream.
func (f *Output) Part() string {
	if f.target == "" {
		return ""
	}
	return f.target + suffix
}

// Partial returns the name of the file that holds incomplete content; "": there is none, since
// nothing was written or the file is complete.
func (f *Output) Partial() string {
	if f.target == "" || f.committed || !f.written {
		return ""
	}
	return f.Part()
}

// Commit completes the file and renames it to its final name.
func (f *Output) Commit() error {
	if f.target == "" {
		return nil
	}
	var err error
	if !f.written {
		err = f.begin()
	}
	if err == nil {
		err = f.file.Sync()
	}
	part := f.target + suffix
	if err == nil {
		var ours bool
		if ours, err = support.SameFile(part, f.file); err == nil && !ours {
			return fmt.Errorf("%s is as it was: %s, which was to replace it, has been removed or replaced", f.name, part)
		}
	}
	if err == nil {
		err = support.Rename(part, f.target)
	}
	if err != nil {
		return fmt.Errorf("%s is as it was: what was to replace it is in %s: %w", f.name, part, err)
	}
	f.committed = true
	if err := support.SyncFolder(filepath.Dir(f.target)); err != nil {
		return fmt.Errorf("%s is complete, and may be lost if the machine loses power now: %w", f.name, err)
	}
	return nil
}

// Close stops writing. Content that was not committed stays in the partial file.
func (f *Output) Close() error {
	if f.stdout != nil {
		return nil
	}
	if f.target != "" && !f.committed {
		if info, err := f.file.Stat(); err == nil && info.Size() == 0 {
			_ = os.Remove(f.target + suffix) // an empty file is useless
		}
	}
	return f.file.Close()
}

// isOneOf reports whether a path leads to one of several regular files.
func isOneOf(path string, others []string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	for _, other := range others {
		if same, err := os.Stat(other); err == nil && os.SameFile(info, same) {
			return true
		}
	}
	return false
}

// maxLinks limits how many symbolic links may follow one another, as in Linux.
const maxLinks = 40

// resolve follows the links of a name to the file to replace, which need not exist. It reports
// whether the name leads to a stream instead: a pipe, a device, or a descriptor of this process,
// which may lead to a regular file but has no name of its own.
func resolve(name string) (path string, stream bool, err error) {
	path = Find(name)
	for range maxLinks {
		// The part before .. may be a link; the operating system follows it.
		dir, base := filepath.Split(path)
		if dir == "" {
			dir = "."
		}
		if dir, err = filepath.EvalSymlinks(dir); err != nil {
			return "", false, err
		}
		if dir == "/dev/fd" || strings.HasPrefix(dir, "/proc/") {
			return path, true, nil
		}
		path = filepath.Join(dir, base)
		info, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return path, false, nil
		case err != nil:
			return "", false, err
		case info.IsDir():
			return "", false, errors.New("it is a folder; name a file in it")
		case info.Mode()&fs.ModeSymlink == 0:
			return path, !info.Mode().IsRegular(), nil
		}
		link, err := os.Readlink(path)
		if err != nil {
			return "", false, err
		}
		if path = link; !filepath.IsAbs(link) {
			path = dir + string(filepath.Separator) + link
		}
	}
	return "", false, fmt.Errorf("more than %d symbolic links follow one another", maxLinks)
}

// OutputTarget returns the absolute path of the file that OpenOutput would replace for the same
// name; "": it would write to a stream, or fail.
func OutputTarget(name string, stdout io.Writer) string {
	if name == "" || IsStdout(name, stdout) {
		return ""
	}
	path, stream, err := resolve(name)
	if stream || err != nil {
		return ""
	}
	return absolute(path)
}

// absolute returns an absolute path without links before its last element. The caller has resolved that.
func absolute(path string) string {
	whole, err := filepath.Abs(path)
	if err != nil { // there is no working directory
		return path
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(whole)); err == nil {
		return filepath.Join(dir, filepath.Base(whole))
	}
	return whole
}

// IsStdout reports whether a name leads to standard output, as - does.
func IsStdout(name string, stdout io.Writer) bool {
	if name == "-" {
		return true
	}
	f, ok := stdout.(interface{ Stat() (fs.FileInfo, error) })
	if !ok {
		return false
	}
	out, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(name)
	return err == nil && os.SameFile(named, out)
}
