package scaffold

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/internal/process/disk"
)

// filesIn returns the files in a folder, without hidden files. Their paths are relative to the folder, with slashes.
func filesIn(folder string, most int) (all []string) {
	_ = fs.WalkDir(os.DirFS(folder), ".", func(id string, e fs.DirEntry, err error) error {
		switch hidden := id != "." && strings.HasPrefix(e.Name(), "."); {
		case err != nil: // an unreadable folder counts as empty
		case len(all) == most:
			return fs.SkipAll
		case e.IsDir() && hidden:
			return fs.SkipDir
		case !e.IsDir() && !hidden && !disk.IsLock(id):
			all = append(all, id)
		}
		return nil //nolint:nilerr // as above
	})
	return all
}

// labelFolders reads folders of texts; the name of a folder is the label of its texts. It only accepts files with the
// suffix .txt or none: Markdown and the like are documents. Most files must be texts; if there are many others, it
// asks.
func labelFolders(d *data, c *converted) bool {
	var texts []string
	labels, deep := map[string]bool{}, map[string]bool{} // folders with texts; deep: in folders of the folder
	others, deeper := 0, 0
	for _, id := range filesIn(d.folder, -1) {
		label, ext, readme := path.Dir(id), strings.ToLower(path.Ext(id)), strings.HasPrefix(strings.ToLower(path.Base(id)), "readme")
		switch {
		case readme:
			c.leave(1, "file% named README")
		case label == "." || ext != ".txt" && strings.Trim(ext, ".0123456789") != "":
			others++
		case path.Dir(label) == ".":
			texts, labels[label] = append(texts, id), true
		default:
			deep[label] = true
			deeper++
		}
	}
	if deeper > others+len(texts) {
		c.err = inPart(d.folder, deep)
	}
	if others += deeper; len(labels) < 2 || len(texts) <= others {
		return false
	}
	if 3*others > len(texts) && !d.named {
		c.unsure = fmt.Sprintf("it may have a folder for each label, and %d other files, or be a folder of documents: --format folders says the first, --format documents the second", others)
	}
	c.leave(others, "file% beside the texts of labels")
	for _, id := range texts {
		text, err := readText(filepath.Join(d.folder, filepath.FromSlash(id)))
		if err != nil {
			c.leave(1, "file% without text")
			continue
		}
		c.add(field{"id", id}, field{"text", string(text)}, field{"label", path.Dir(id)})
	}
	return true
}

// trains matches names of folders that hold training data.
var trains = regexp.MustCompile(`(?i)(^|[^a-z])train(ing)?([^a-z]|$)`)

// inPart returns advice if folders of labels are in parts of a folder, such as train and test. That is assumed if a
// part has a usual name, if the parts have labels in common, or if there is only one part.
func inPart(folder string, deep map[string]bool) error {
	var parts []string
	best, usual, in, has := "", false, map[string]int{}, map[string]int{}
	for _, id := range slices.Sorted(maps.Keys(deep)) {
		part, label := path.Split(id)
		in[label]++
		train := trains.MatchString(path.Base(part))
		usual = usual || train || tries.MatchString(path.Base(part)) || in[label] > 1
		if has[part]++; has[part] != 2 {
			continue
		}
		parts = append(parts, filepath.Join(folder, part))
		if best == "" || train {
			best = parts[len(parts)-1]
		}
	}
	if len(parts) == 0 || len(parts) > 1 && !usual {
		return nil
	}
	return fmt.Errorf("these are in %s: name %s, and perhaps another to try the pipeline on", list(parts), best)
}
