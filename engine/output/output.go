package output

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/racflow/racflow/sdk/support"
)

// suffix is what the name of a file ends with until it is complete.
const suffix = ".part"

// File is a file, or a stream, that is being written.
type File struct {
	name      string // as it was given
	target    string // the file to replace; "": a stream
	file      *os.File
	stdout    io.Writer // in place of file
	left      int64     // bytes that an earlier process has left in the partial file
	written   bool
	committed bool
}

// BusyError says that another process, or another Open of this one, is writing a file.
type BusyError struct{ Name string }

func (e *BusyError) Error() string {
	return fmt.Sprintf("another process is writing %s: wait until it has ended, or choose another file", e.Name)
}

// Open makes a file ready to be written, and changes nothing of it yet. The name
// - is standard output, as is a name that leads there; then everything goes to
// stdout. It refuses a file that another process is writing, one that cannot be
// replaced, and one that is among inputs.
func Open(name string, stdout io.Writer, inputs ...string) (*File, error) {
	if name == "" || IsStdout(name, stdout) {
		return &File{stdout: stdout}, nil
	}
	target, stream, err := resolve(name)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be written: %w", name, err)
	}
	if stream {
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return nil, err
		}
		return &File{name: name, file: file}, nil
	}
	for _, path := range []string{target, target + suffix} {
		if isOneOf(path, inputs) {
			return nil, fmt.Errorf("output %s would write over what this run reads; choose another file", name)
		}
	}
	f := &File{name: name, target: target}
	if err := f.claim(); err != nil {
		return nil, err
	}
	return f, nil
}

// claim opens and locks the partial file.
func (f *File) claim() error {
	part := f.target + suffix
	before, err := os.Stat(f.target)
	if err == nil {
		// Who may not write a file should not replace it either.
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
	if errors.Is(err, support.ErrBusy) {
		return &BusyError{f.name}
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

// prepare gives a partial file the permissions of the one that it is to replace, where there
// is one, and returns its size.
func prepare(f *os.File, before os.FileInfo) (size int64, err error) {
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
func (f *File) Write(b []byte) (int, error) {
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

// begin removes what an earlier process has left in the partial file.
func (f *File) begin() error {
	f.written = true
	if f.target == "" {
		return nil
	}
	return f.file.Truncate(0)
}

// Name returns the name that the file was given; "": it is standard output.
func (f *File) Name() string { return f.name }

// Target returns the absolute path of the file that is replaced; "": what is written is a
// stream.
func (f *File) Target() string {
	if f.target == "" {
		return ""
	}
	return absolute(f.target)
}

// Left returns how many bytes the partial file had when this one was opened: what a process
// left there that ended before it was complete.
func (f *File) Left() int64 { return f.left }

// Part returns the name of the partial file, whether it is there or not; "": what is written
// is a stream.
func (f *File) Part() string {
	if f.target == "" {
		return ""
	}
	return f.target + suffix
}

// Partial returns the name of the file that holds what was written, as long as
// that is not complete; "": there is none, since nothing was written or it is
// where it belongs.
func (f *File) Partial() string {
	if f.target == "" || f.committed || !f.written {
		return ""
	}
	return f.Part()
}

// Commit completes the file: what was written is under its name from then on.
func (f *File) Commit() error {
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
		err = os.Rename(part, f.target)
	}
	if err != nil {
		return fmt.Errorf("%s is as it was: what was to replace it is in %s: %w", f.name, part, err)
	}
	f.committed = true
	if err := syncFolder(filepath.Dir(f.target)); err != nil {
		return fmt.Errorf("%s is complete, and may be lost if the machine loses power now: %w", f.name, err)
	}
	return nil
}

// syncFolder brings the names in a folder to the disk, where its file system can.
func syncFolder(dir string) error {
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = folder.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, folder.Close())
}

// Close ends the writing. What was written and not committed stays in the partial
// file.
func (f *File) Close() error {
	if f.stdout != nil {
		return nil
	}
	if f.target != "" && !f.committed {
		if info, err := f.file.Stat(); err == nil && info.Size() == 0 {
			_ = os.Remove(f.target + suffix) // an empty file is of no use, and of no harm
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
