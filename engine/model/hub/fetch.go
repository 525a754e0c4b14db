package hub

import (
	"context"
	"crypto/sha1" // #nosec G505 -- git names contents so; nothing is protected by it
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/racflow/racflow/engine/program"
	"github.com/racflow/racflow/engine/terminal"
)

// Target is where a file goes, and what it has to be.
type Target struct {
	Path   string                  // of the file; what is there already is resumed
	State  string                  // a file that keeps whose content is there, between attempts and processes
	SHA256 string                  // in hex; "": any
	Limit  int64                   // the most bytes that it may have
	Report func(done, total int64) // called as bytes arrive, total is -1 where nobody says it; may be nil
}

// File is what arrived.
type File struct {
	Commit string // of the repository; "": the server does not say
	ETag   string // of the content; "": the server does not say
	Size   int64
	SHA256 string
}

// Fetch brings one file of a repository to its target, in as many attempts as it takes. What has
// arrived stays where it fails, and is resumed by the next call if it still has the same content
// on the hub. The error is fs.ErrNotExist where the repository has no such file.
func (c *Client) Fetch(ctx context.Context, r Repository, name string, t Target) (File, error) {
	if c.offline {
		return File{}, ErrOffline
	}
	for failures := 0; ; {
		before := size(t.Path)
		f, resumed, err := c.attempt(ctx, r, name, t)
		switch {
		case err == nil:
			return f, nil
		case ctx.Err() != nil:
			return File{}, context.Cause(ctx)
		case errors.Is(err, errDiffers) && resumed: // what was left there was damaged; the next attempt resumes nothing
			continue
		case !temporary(err), !c.reached: // nobody waits for a hub that has never answered
			return File{}, fmt.Errorf("%s: %w", name, err)
		}
		if size(t.Path) > before {
			failures = 0 // some of it came
		} else if failures++; failures >= c.attempts() {
			return File{}, fmt.Errorf("%s: %w", name, err)
		}
		wait, tooLong := delay(max(failures, 1), err)
		if tooLong != nil {
			return File{}, fmt.Errorf("%s: %w", name, tooLong)
		}
		if c.Note != nil {
			c.Note(fmt.Sprintf("%s: %v; trying again in %s", name, err, max(wait, time.Second).Round(time.Second)))
		}
		if err := c.sleep(ctx, wait); err != nil {
			return File{}, err
		}
	}
}

// attempt asks for the file once, or for the rest of it. It says whether it resumed one.
func (c *Client) attempt(ctx context.Context, r Repository, name string, t Target) (_ File, resumed bool, _ error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	a, err := c.open(ctx, stop, r.file(name), begun(t))
	if err != nil {
		return File{}, false, err
	}
	defer a.body.Close()
	resumed = a.offset > 0
	if err := a.acceptable(t); err != nil {
		return File{}, resumed, err
	}
	if !a.complete {
		if err := c.receive(ctx, stop, a, t); err != nil {
			return File{}, resumed, err
		}
	}
	sum, err := verify(a, t)
	if err != nil {
		return File{}, resumed, errors.Join(err, os.Remove(t.Path))
	}
	return File{Commit: a.commit, ETag: a.etag, Size: size(t.Path), SHA256: sum}, resumed, nil
}

// acceptable says why nothing of an answer is wanted.
func (a *answer) acceptable(t Target) error {
	if a.total > t.Limit {
		return fmt.Errorf("it has %s, more than the limit of %s", terminal.Bytes(a.total), terminal.Bytes(t.Limit))
	}
	if declared := a.sha256(); declared != "" && t.SHA256 != "" && declared != t.SHA256 {
		return fmt.Errorf("the hub has other content there (sha256 %s) than the pinned one (%s)", declared, t.SHA256)
	}
	dir := filepath.Dir(t.Path)
	if free := Free(dir); free >= 0 && a.total-a.offset > free {
		return fmt.Errorf("%s more are needed in %s, where %s are free", terminal.Bytes(a.total-a.offset), dir, terminal.Bytes(free))
	}
	return nil
}

var errDiffers = errors.New("what arrived differs")

// verify compares a whole file with what it should be, and returns its hash.
func verify(a *answer, t Target) (string, error) {
	sum, err := program.HashFile(t.Path)
	if err != nil {
		return "", err
	}
	if t.SHA256 != "" && sum != t.SHA256 {
		return "", fmt.Errorf("%w: its sha256 is %s, the pinned one %s", errDiffers, sum, t.SHA256)
	}
	if declared := a.sha256(); declared != "" && sum != declared {
		return "", fmt.Errorf("%w: its sha256 is %s, the hub declares %s", errDiffers, sum, declared)
	}
	if declared := a.hash(gitHash); declared != "" {
		git, err := blob(t.Path)
		if err == nil && git != declared {
			err = fmt.Errorf("%w: git would call it %s, the hub declares %s", errDiffers, git, declared)
		}
		return sum, err
	}
	return sum, nil
}

var (
	fileHash = regexp.MustCompile(`^[0-9a-f]{64}$`)
	gitHash  = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

// blob is what git calls a file's content.
func blob(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	sum := sha1.New() // #nosec G401 -- as above
	fmt.Fprintf(sum, "blob %d\x00", info.Size())
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// size is how many bytes a file has; 0 where it is not there.
func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// part is the beginning of a file that is here.
type part struct {
	etag string // of the content that it begins; "": not known, so nothing can be resumed
	size int64
}

func begun(t Target) part {
	etag, err := os.ReadFile(t.State)
	if err != nil {
		return part{}
	}
	return part{string(etag), size(t.Path)}
}

// begin makes a new, empty file, and keeps whose content it will have.
func begin(t Target, etag string) (*os.File, error) {
	if err := os.Remove(t.State); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err := os.Create(t.Path)
	if err != nil || etag == "" {
		return f, err
	}
	if err := os.WriteFile(t.State, []byte(etag), 0o600); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
