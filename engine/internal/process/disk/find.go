package disk

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// Find returns the path of a file whose name may have another Unicode form: on Macs, ü may be two
// characters, and HCL writes it as one. A file with exactly this name comes first. If the file does
// not exist, the result lies in the folder that was found.
func Find(path string) string {
	if path == "" || norm.NFC.IsNormalString(path) && norm.NFD.IsNormalString(path) || exists(path) || filepath.Dir(path) == path {
		return path
	}
	dir, name := Find(filepath.Dir(path)), filepath.Base(path)
	entries, _ := os.ReadDir(dir) // an unreadable folder counts as empty
	for _, e := range entries {
		if norm.NFC.String(e.Name()) == norm.NFC.String(name) && !exists(filepath.Join(dir, name)) {
			name = e.Name()
		}
	}
	return filepath.Join(dir, name)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// SplitGlob splits a pattern into its leading folder and the rest, with slashes. An empty rest means
// that the path is no pattern. A path that exists is no pattern: names of files and folders may have
// brackets.
func SplitGlob(name string) (base, pattern string) {
	name = filepath.Clean(name)
	if found := Find(name); !strings.ContainsAny(name, "*?[{") || exists(found) {
		return found, ""
	}
	base, pattern = SplitGlob(filepath.Dir(name))
	return base, path.Join(pattern, filepath.Base(name))
}

// CheckGlob refuses a pattern that takes too long to match: each brace and each ** multiplies the tries.
func CheckGlob(pattern string) error {
	if strings.Count(pattern, "{") > 4 || strings.Count(pattern, "**") > 3 {
		return fmt.Errorf("%q has more than four braces, or ** more than three times: write a simpler pattern, or several sources", pattern)
	}
	return nil
}

// IsLock reports whether a file is the lock file that Excel or Word keeps beside an open document.
func IsLock(name string) bool { return strings.HasPrefix(filepath.Base(name), "~$") }

// IsGlob reports whether a path is a pattern for several files.
func IsGlob(path string) bool {
	_, pattern := SplitGlob(path)
	return pattern != ""
}
