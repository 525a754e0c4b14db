package section

import (
	"slices"
	"sort"
)

// Section is a heading with its blocks, of which it is one, and what stands before
// it, where that is the first.
type Section struct {
	Title  string
	Parent int // the section above it; -1: none
	Blocks []Block
	level  int // 1 to 6; 0: there is no heading
}

// Start and End are the bytes of the document that a section has.
func (s Section) Start() int { return s.Blocks[0].Start }

// End is the byte behind its last.
func (s Section) End() int { return s.Blocks[len(s.Blocks)-1].End }

// Sections are those of a document, in its order.
type Sections []Section

// Read reads a document; each section has at least one block.
func Read(text string) Sections {
	var all Sections
	var open []int // the headings that the next belongs to
	for _, b := range blocks(text) {
		if b.Kind != Heading {
			if len(all) == 0 {
				all = append(all, Section{Parent: -1})
			}
			last := &all[len(all)-1]
			last.Blocks = append(last.Blocks, b)
			continue
		}
		if len(all) == 1 && all[0].level == 0 { // what is before the first heading
			all[0].Title, all[0].level = b.title, b.level
			all[0].Blocks = append(all[0].Blocks, b)
			open = append(open, 0)
			continue
		}
		for len(open) > 0 && all[open[len(open)-1]].level >= b.level {
			open = open[:len(open)-1]
		}
		s := Section{Title: b.title, level: b.level, Parent: -1, Blocks: []Block{b}}
		if len(open) > 0 {
			s.Parent = open[len(open)-1]
		}
		open = append(open, len(all))
		all = append(all, s)
	}
	return all
}

// Path is the titles from the top down to a section.
func (s Sections) Path(i int) []string {
	var titles []string
	for ; i >= 0; i = s[i].Parent {
		if t := s[i].Title; t != "" {
			titles = append(titles, t)
		}
	}
	slices.Reverse(titles)
	return titles
}

// At returns the titles from the top down to the section that a byte is in.
func (s Sections) At(at int) []string {
	return s.Path(sort.Search(len(s), func(i int) bool { return s[i].Start() > at }) - 1)
}
