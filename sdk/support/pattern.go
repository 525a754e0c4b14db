package support

import (
	"regexp"
	"sync"
)

// Pattern returns a regular expression that is compiled on first use; an invalid expression panics
// then. Compiling all of them would take a good part of a process's start, and most processes need
// few.
func Pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
