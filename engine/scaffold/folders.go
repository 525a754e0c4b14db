package scaffold

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// visible are the entries of a folder, without those that programs leave there.
func visible(folder string) (dirs, files []fs.DirEntry) {
	entries, _ := os.ReadDir(folder) // what cannot be read holds nothing
	for _, e := range entries {
		switch name := e.Name(); {
		case strings.HasPrefix(name, "."), strings.HasPrefix(name, "_"), strings.HasSuffix(name, ".crc"):
		case e.IsDir():
			dirs = append(dirs, e)
		default:
			files = append(files, e)
		}
	}
	return dirs, files
}

// folderIn finds the form of a folder, or takes the one that is named. nil: it has none of them.
func folderIn(folder, name string) (*export, *converted, error) {
	for _, e := range exports {
		read := map[string]func(string, *converted) (bool, error){"dialogflow": dialogflow, "folders": labelFolders}[e.name]
		if read == nil || name != "" && name != e.name {
			continue
		}
		c := &converted{}
		if ok, err := read(folder, c); err != nil || ok && c.n > 0 {
			return &e, c, err
		}
	}
	return nil, nil, nil
}

// dialogflow reads the phrases of an agent of Dialogflow ES that has been unpacked.
func dialogflow(folder string, c *converted) (bool, error) {
	if filepath.Base(folder) != "intents" {
		folder = filepath.Join(folder, "intents")
	}
	_, files := visible(folder)
	for _, f := range files {
		intent, _, ok := strings.Cut(f.Name(), "_usersays_")
		if !ok {
			continue
		}
		text, err := readText(filepath.Join(folder, f.Name()))
		if err != nil {
			return false, err
		}
		for _, phrase := range elements(text) {
			said := ""
			for _, part := range elements(objectOf(phrase).get("data")) {
				said += objectOf(part).text("text")
			}
			c.add(field{"text", said}, field{"label", intent})
		}
	}
	return c.n > 0, nil
}

// labelFolders reads folders of texts, each called by its label. Only names that end in .txt or in nothing
// say so: Markdown and the like are documents.
func labelFolders(folder string, c *converted) (bool, error) {
	dirs, files := visible(folder)
	if len(dirs) < 2 || slices.ContainsFunc(files, func(f fs.DirEntry) bool { return !strings.HasPrefix(strings.ToLower(f.Name()), "readme") }) {
		return false, nil
	}
	var paths []string
	for _, d := range dirs {
		inner, files := visible(filepath.Join(folder, d.Name()))
		if len(inner) > 0 || len(files) == 0 {
			return false, nil
		}
		for _, f := range files {
			if ext := filepath.Ext(f.Name()); ext != ".txt" && strings.Trim(ext, ".0123456789") != "" {
				return false, nil
			}
			paths = append(paths, filepath.Join(d.Name(), f.Name()))
		}
	}
	for _, path := range paths {
		text, err := readText(filepath.Join(folder, path))
		if err != nil {
			c.leave("a file that is no text was left out")
			continue
		}
		c.add(field{"id", filepath.ToSlash(path)}, field{"text", string(text)}, field{"label", filepath.Dir(path)})
	}
	return true, nil
}

// splitOf is the part of the data that a word stands for; empty: none.
func splitOf(word string) string {
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "train", "training", "trn":
		return "train"
	case "test", "testing", "tst", "eval", "evaluation", "holdout", "heldout":
		return "test"
	case "val", "valid", "validation", "dev":
		return "validation"
	}
	return ""
}

// triedOf is the part that a pipeline is tried on.
func triedOf(of func(kind string) string) string {
	if test := of("test"); test != "" {
		return test
	}
	return of("validation")
}
