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

// dialogflow reads the phrases of an agent of Dialogflow ES that has been unpacked.
func dialogflow(d *data, c *converted) bool {
	_, files := visible(filepath.Join(d.folder, "intents"))
	for _, f := range files {
		intent, _, ok := strings.Cut(f.Name(), "_usersays_")
		if !ok {
			continue
		}
		text, err := readText(filepath.Join(d.folder, "intents", f.Name()))
		if err != nil {
			c.leave("files that are no text were left out")
		}
		for _, phrase := range elements(text) {
			said := ""
			for _, part := range elements(objectOf(phrase).get("data")) {
				said += objectOf(part).text("text")
			}
			c.add(field{"text", said}, field{"label", intent})
		}
	}
	return true
}

// labelFolders reads folders of texts, each called by its label. Only names that end in .txt or in nothing
// say so: Markdown and the like are documents.
func labelFolders(d *data, c *converted) bool {
	dirs, files := visible(d.folder)
	if len(dirs) < 2 || slices.ContainsFunc(files, func(f fs.DirEntry) bool { return !strings.HasPrefix(strings.ToLower(f.Name()), "readme") }) {
		return false
	}
	for _, label := range dirs {
		inner, files := visible(filepath.Join(d.folder, label.Name()))
		for _, f := range files {
			if ext := filepath.Ext(f.Name()); ext != ".txt" && strings.Trim(ext, ".0123456789") != "" {
				return false
			}
			id := filepath.Join(label.Name(), f.Name())
			text, err := readText(filepath.Join(d.folder, id))
			if err != nil {
				c.leave("files that are no text were left out")
				continue
			}
			c.add(field{"id", filepath.ToSlash(id)}, field{"text", string(text)}, field{"label", label.Name()})
		}
		if len(inner) > 0 || len(files) == 0 {
			return false
		}
	}
	return true
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
