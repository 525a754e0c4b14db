package syntax

import "strings"

// maxLevel bounds how deep units are searched inside units.
const maxLevel = 12

// File is a source file that was read.
type File struct {
	*Language
	text  string
	lines []line
}

// Unit is a declaration or a statement, with the comments and attributes directly above
// it: the bytes from Start up to End. Units side by side leave no gap.
type Unit struct {
	Start, End int
	low, high  int // its lines
	first      int // the first that is not a comment or attribute; high: none
	level      int // units around it
}

// Read reads a source file.
func (l *Language) Read(text string) *File {
	return &File{l, text, l.read(text)}
}

// Units are those at the top level.
func (f *File) Units() []Unit {
	return f.units(0, len(f.lines), f.shallowest(), 0)
}

// Inside are the units of a unit's body, which begins with the first of them; nil: it
// has none.
func (f *File) Inside(u Unit) []Unit {
	first, depth := body(f.lines, u)
	if first == u.high || u.level == maxLevel {
		return nil
	}
	return f.units(first, u.high, depth, u.level+1)
}

// Declares reports whether the units inside a declaration with that signature are
// declarations, too.
func (f *File) Declares(u Unit, signature string) bool {
	return f.holds(signature) || f.isScope(u)
}

// Signature is the text of a declaration up to its body; "": the unit is no declaration
// with a body.
func (f *File) Signature(u Unit) string { return f.signature(f.text, f.lines, u) }

func (f *File) units(low, high, depth, level int) []Unit {
	all := units(f.lines, low, high, depth)
	for i := range all {
		all[i].Start, all[i].End, all[i].level = f.lines[all[i].low].start, f.lines[all[i].high-1].end, level
	}
	return all
}

// shallowest is the least depth of a line with code.
func (f *File) shallowest() int {
	least := -1
	for _, l := range f.lines {
		if l.kind != blank && !l.continues && (least < 0 || l.depth < least) {
			least = l.depth
		}
	}
	return max(0, least)
}

// isScope reports whether a unit is a function that is called at once, as JavaScript has
// around the declarations of a file.
func (f *File) isScope(u Unit) bool {
	return f.template && u.first < u.high && strings.HasPrefix(f.text[f.lines[u.first].start:], "(")
}
