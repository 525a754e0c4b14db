package output

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxLinks is how many symbolic links may follow one another, as in Linux.
const maxLinks = 40

// resolve follows the links of a name to the file that is to be replaced, which
// need not be there. It reports whether that is a stream instead: a pipe, a device,
// or a descriptor of this process, which may lead to a regular file but has no name
// of its own.
func resolve(name string) (path string, stream bool, err error) {
	path = name
	for range maxLinks {
		// What stands before .. may be a link: the operating system follows it.
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

// Target returns the absolute path of the file that Open replaces where it is given the same
// name; "": it would write to a stream, or fail.
func Target(name string, stdout io.Writer) string {
	if name == "" || IsStdout(name, stdout) {
		return ""
	}
	path, stream, err := resolve(name)
	if stream || err != nil {
		return ""
	}
	return absolute(path)
}

// absolute is a path without links before its last name, which has been followed.
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
	f, ok := stdout.(*os.File)
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
