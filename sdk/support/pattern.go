package support

import (
	"regexp"
	"sync"
)

// Pattern returns a regular expression that is compiled when it is first asked for, and panics
// then if it is none. To compile all of them takes a good part of a process's start, and most
// processes need few.
func Pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
