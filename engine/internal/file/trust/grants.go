package trust

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/process/disk"
)

// Grants stores what people granted, in a file for each folder.
type Grants struct{ dir string }

// granted is the content of such a file.
type granted struct {
	Folder  string   `json:"folder"`
	Wants   []string `json:"wants"`           // Want.kept
	Written []string `json:"files,omitempty"` // digests of files that racflow wrote there
}

// OpenGrants returns the grants of the user, in the folder racflow of the user's configuration.
func OpenGrants() (Grants, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return Grants{}, fmt.Errorf("nothing can be granted for longer than a command: %w", err)
	}
	return Grants{filepath.Join(dir, "racflow", "trust")}, nil
}

// Left returns the wants of a request that nobody has granted yet. shipped reports whether racflow ships a file with
// this content. Such a file, and a file that racflow wrote into the folder, may use hosts and secrets. A file that
// racflow wrote may also read the outside data for which it was written, but not through a link in the folder.
func (g Grants) Left(r Request, shipped func(content []byte) bool) ([]Want, error) {
	have, err := g.read(r.Folder)
	written := slices.Contains(have.Written, digest(r.Content))
	return slices.DeleteFunc(slices.Clone(r.Wants), func(w Want) bool {
		switch {
		case w.Free || slices.Contains(have.Wants, w.kept()):
			return true
		case w.Kind == Files:
			return written && !w.link
		}
		return w.Kind != Plugins && (written || shipped(r.Content))
	}), err
}

// kept is a want in its stored form.
func (w Want) kept() string {
	if w.Value == "" {
		return w.Text
	}
	return w.Text + " " + w.Value
}

// Grant stores what a person granted to a folder.
func (g Grants) Grant(folder string, wants []Want) error {
	return g.change(folder, func(have *granted) {
		for _, w := range wants {
			have.Wants = append(have.Wants, w.kept())
		}
	})
}

// Written records that racflow wrote a pipeline file.
func (g Grants) Written(path string, content []byte) error {
	return g.change(pipeline.Folder(path), func(have *granted) { have.Written = append(have.Written, digest(content)) })
}

func digest(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }

func (g Grants) path(folder string) string {
	return filepath.Join(g.dir, digest([]byte(folder))[:32]+".json")
}

func (g Grants) read(folder string) (have granted, err error) {
	if g.dir == "" {
		return have, nil
	}
	raw, err := os.ReadFile(g.path(folder))
	if errors.Is(err, fs.ErrNotExist) {
		return have, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &have)
	}
	if err != nil || have.Folder != folder {
		return granted{}, err
	}
	return have, nil
}

func (g Grants) change(folder string, change func(*granted)) error {
	if g.dir == "" {
		return nil
	}
	have, err := g.read(folder)
	if err != nil {
		have = granted{} // ignores the content of a broken file
	}
	have.Folder = folder
	change(&have)
	for _, list := range []*[]string{&have.Wants, &have.Written} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	raw, err := json.MarshalIndent(have, "", "  ")
	if err == nil {
		err = os.MkdirAll(g.dir, 0o700)
	}
	if err != nil {
		return err
	}
	return disk.WriteFile(g.path(folder), append(raw, '\n'), true)
}
