package rule

import (
	"slices"

	"github.com/agext/levenshtein"
)

// maxName is how long a name may be, in bytes, to be a mistyped one.
const maxName = 100

// Nearest returns the known name that a mistyped one most likely meant, or ""
// where none is near: at most two edits away, as Terraform advises, and fewer
// than the name is long.
func Nearest(given string, known []string) string {
	best, edits := "", min(3, len(given))
	if len(given) > maxName {
		return ""
	}
	for _, k := range slices.Sorted(slices.Values(known)) {
		if len(k) > maxName {
			continue
		}
		if d := levenshtein.Distance(given, k, nil); d < edits {
			best, edits = k, d
		}
	}
	return best
}

// DidYouMean turns Nearest into advice: a sentence after a space, or nothing.
func DidYouMean(given string, known []string) string {
	if n := Nearest(given, known); n != "" {
		return " Did you mean \"" + n + "\"?"
	}
	return ""
}
