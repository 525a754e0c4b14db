package syntax

import "slices"

// Outline are the declarations of a file, in the order in which they begin.
type Outline []declaration

type declaration struct {
	start, end int
	signature  string
	in         int // the declaration around it; -1: none
}

// Outline finds all declarations whose bodies hold others, and those in them.
func (f *File) Outline() Outline {
	var all Outline
	var add func(units []Unit, in int)
	add = func(units []Unit, in int) {
		for _, u := range units {
			signature, within := f.Signature(u), in
			if signature != "" {
				all = append(all, declaration{u.Start, u.End, signature, in})
				within = len(all) - 1
			}
			if f.Declares(u, signature) {
				add(f.Inside(u), within)
			}
		}
	}
	add(f.Units(), -1)
	return all
}

// At returns the signatures of the declarations around a byte, from the outside to
// the inside.
func (o Outline) At(at int) []string {
	n, _ := slices.BinarySearchFunc(o, at, func(d declaration, at int) int {
		if d.start <= at {
			return -1
		}
		return 1
	})
	var path []string
	for n--; n >= 0; n = o[n].in {
		// A unit that ended before may be beside others in the same one.
		if o[n].end > at {
			path = append(path, o[n].signature)
		}
	}
	slices.Reverse(path)
	return path
}
