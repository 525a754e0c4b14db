package syntax

import "strings"

// deepest is how far units are looked for inside units.
const deepest = 12

// File is a source file that was read.
type File struct {
	*Language
	text  string
	lines []line
}

// Unit is a declaration, or a statement, with what is directly above it: the bytes
// from Start up to End. The units that stand side by side leave nothing out.
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

// Inside are the units of a unit's body, which begins where the first of them
// does; nil: it has none.
func (f *File) Inside(u Unit) []Unit {
	first, depth := body(f.lines, u)
	if first == u.high || u.level == deepest {
		return nil
	}
	return f.units(first, u.high, depth, u.level+1)
}

// Declares says whether the units inside one are declarations, where it is one
// itself and has that signature.
func (f *File) Declares(u Unit, signature string) bool {
	return f.holds(signature) || f.isScope(u)
}

// Signature is the text of a declaration up to its body; "" where a unit declares
// nothing that has one.
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
		if l.kind != blank && !l.goesOn && (least < 0 || l.depth < least) {
			least = l.depth
		}
	}
	return max(0, least)
}

// isScope says whether a unit is a function that is called at once, which
// JavaScript has around the declarations of a file.
func (f *File) isScope(u Unit) bool {
	return f.template && u.first < u.high && strings.HasPrefix(f.text[f.lines[u.first].start:], "(")
}
