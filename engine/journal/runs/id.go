package runs

import (
	"cmp"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/racflow/racflow/engine/private"
)

// The names of runs: of this racflow, and of older ones, which are times.
var (
	numbered = regexp.MustCompile(`^run-(\d{6,18})$`)
	timed    = regexp.MustCompile(`^\d{8}-\d{6}-[0-9a-f]{6}$`)
)

// marker begins the names of files that remember the highest number that was given.
const marker = "last-"

// IsID reports whether a text could name a run.
func IsID(text string) bool { return numbered.MatchString(text) || timed.MatchString(text) }

// number is that of a run, 0 of one that an older racflow kept.
func number(id string) int64 {
	digits, _ := strings.CutPrefix(id, "run-")
	n, _ := strconv.ParseInt(digits, 10, 64) // a time has a dash
	return n
}

// compare orders names of runs, the older one first.
func compare(a, b string) int {
	return cmp.Or(cmp.Compare(number(a), number(b)), strings.Compare(a, b))
}

func newID(n int64) string { return fmt.Sprintf("run-%06d", n) }

// list returns the names of all runs, oldest first, and the highest number that was given.
func (r Runs) list() (ids []string, highest int64) {
	highest = r.marked()
	entries, _ := os.ReadDir(r.dir) // none: there are no runs
	for _, e := range entries {
		if e.IsDir() && IsID(e.Name()) {
			highest = max(highest, number(e.Name()))
			ids = append(ids, e.Name())
		}
	}
	slices.SortFunc(ids, compare)
	return ids, highest
}

// marked is the highest number that a marker remembers.
func (r Runs) marked() (highest int64) {
	for of := range r.markers() {
		highest = max(highest, of)
	}
	return highest
}

// markers yields the markers by their numbers.
func (r Runs) markers() iter.Seq2[int64, string] {
	return func(yield func(int64, string) bool) {
		entries, _ := os.ReadDir(r.dir) // none: there are no runs
		for _, e := range entries {
			digits, ok := strings.CutPrefix(e.Name(), marker)
			of, err := strconv.ParseInt(digits, 10, 64)
			if ok && err == nil && !yield(of, filepath.Join(r.dir, e.Name())) {
				return
			}
		}
	}
}

// spareMarkers are left below the highest, so that who reads the folder while it changes sees one.
const spareMarkers = 8

// mark remembers that a number was given. Only markers far below it are removed, so that
// processes that mark at once forget nothing.
func (r Runs) mark(n int64) error {
	if n == 0 {
		return nil
	}
	own := fmt.Sprintf("%s%06d", marker, n)
	f, err := os.OpenFile(filepath.Join(r.dir, own), os.O_WRONLY|os.O_CREATE, private.FileMode)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return err
	}
	for of, path := range r.markers() {
		if of < n-spareMarkers {
			_ = os.Remove(path) // another process may have done so
		}
	}
	return nil
}
