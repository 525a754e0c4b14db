package cage

import (
	"os"
	"path"
	"strings"
)

// maxLinks is how many links Follow follows; the system follows no more, either.
const maxLinks = 40

// Follow returns an absolute path without symbolic links, as far as the path exists; it also follows
// a link to a missing target. It calls seen with each link and its target.
func Follow(name string, seen func(link, to string)) string {
	rest := strings.Split(name, "/")
	at := "/"
	for links := 0; len(rest) > 0 && links < maxLinks; {
		next := path.Join(at, rest[0])
		rest = rest[1:]
		to, err := os.Readlink(next)
		if err != nil { // not a link
			at = next
			continue
		}
		links++
		seen(next, to)
		if path.IsAbs(to) {
			at = "/"
		}
		rest = append(strings.Split(to, "/"), rest...)
	}
	return at
}
