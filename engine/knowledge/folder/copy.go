package folder

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/racflow/racflow/engine/private"
)

// LogName is the file of a collection that grows; the others never change.
const LogName = "log"

// Name is that of the folder of a collection.
func Name(collection string) string {
	var b strings.Builder
	for i := range len(collection) {
		switch c := collection[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '_', c == '-', c == '.' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// tries is how often a copy begins anew because a writer has replaced the log meanwhile.
const tries = 10

// Copy makes a folder with the files of a collection as its last commit left them: the log up to there,
// and the segments as links where the file system has those. Whoever writes to the collection
// afterwards changes nothing of the copy. The error is fs.ErrNotExist where nothing was committed,
// ErrForeign where the folder is something else.
func Copy(collection, to string) (Commit, error) {
	for try := 1; ; try++ {
		c, err := attempt(collection, to)
		if !errors.Is(err, errReplaced) || try >= tries {
			return c, err
		}
		if err := os.RemoveAll(to); err != nil {
			return c, err
		}
	}
}

// errReplaced says that segments of a log are gone, because another log has taken its place.
var errReplaced = errors.New("its segments are replaced all the time: try again when nobody writes to it")

func attempt(collection, to string) (Commit, error) {
	log, err := os.Open(filepath.Join(collection, LogName))
	if err != nil {
		return Commit{}, err
	}
	defer log.Close()
	c, err := readLog(log)
	if err != nil {
		return c, err
	}
	if c.End == 0 {
		return c, fmt.Errorf("nothing was committed to %s: %w", collection, fs.ErrNotExist)
	}
	if err := private.MakeFolder(to); err != nil {
		return c, err
	}
	for _, s := range c.Segments {
		err := link(filepath.Join(collection, s.Name), filepath.Join(to, s.Name), s.Size)
		if errors.Is(err, fs.ErrNotExist) {
			err = errReplaced
		}
		if err != nil {
			return c, fmt.Errorf("collection %s: %w", collection, err)
		}
	}
	return c, write(filepath.Join(to, LogName), io.NewSectionReader(log, 0, c.End))
}

// link gives a file that never changes another name, or copies it where it cannot have two.
func link(from, to string, size int64) error {
	if info, err := os.Stat(from); err != nil {
		return err
	} else if info.Size() != size {
		return fmt.Errorf("%s has %d bytes, not %d: restore it from a copy, or delete its folder and build the knowledge again", from, info.Size(), size)
	}
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	return write(to, in)
}

// Link is link for a file of any size.
func Link(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	return link(from, to, info.Size())
}

func write(to string, from io.Reader) error {
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, private.FileMode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, from)
	return errors.Join(err, out.Close())
}
