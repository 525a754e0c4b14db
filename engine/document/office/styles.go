package office

import (
	"encoding/xml"
	"strconv"
	"strings"
)

// style is what a paragraph is by its style.
type style struct {
	name, basedOn string
	level         int    // of a heading; 0: it is none
	list, depth   string // of a list; "": it is in none
}

// styles reads styles.xml.
type styles struct {
	all map[string]*style
	now *style
}

func (s *styles) start(name string, e xml.StartElement) {
	switch value := attr(e, "val"); {
	case name == "style":
		s.now = &style{}
		if len(s.all) < maxStyles {
			s.all[attr(e, "styleId")] = s.now
		}
	case s.now == nil:
	case name == "name":
		s.now.name = strings.ToLower(value)
		if rest, ok := strings.CutPrefix(s.now.name, "heading "); ok {
			s.now.level, _ = strconv.Atoi(rest)
		} else if s.now.name == "title" {
			s.now.level = 1
		}
	case name == "basedOn":
		s.now.basedOn = value
	case name == "outlineLvl" && s.now.level == 0:
		s.now.level = outline(value)
	case name == "numId":
		s.now.list = value
	case name == "ilvl":
		s.now.depth = value
	}
}

// maxStyles bounds the styles and lists that are remembered.
const maxStyles = 10_000

// outline is the level of a heading of an outline level, which counts from 0; 9 is text.
func outline(value string) int {
	if n, err := strconv.Atoi(value); err == nil && n >= 0 && n < 9 {
		return n + 1
	}
	return 0
}

func (s *styles) end(name string) {
	if name == "style" {
		s.now = nil
	}
}
func (*styles) text(string) {}
func (*styles) size() int   { return 0 }

// of returns a style with what it has from those that it is based on.
func (s *styles) of(id string) style {
	var found style
	for range 10 { // they may go round
		one := s.all[id]
		if one == nil {
			break
		}
		if found.name == "" {
			found.name = one.name
		}
		if found.level == 0 {
			found.level = one.level
		}
		if found.list == "" {
			found.list, found.depth = one.list, one.depth
		}
		id = one.basedOn
	}
	return found
}

// lists reads numbering.xml: which levels of which lists have numbers.
type lists struct {
	formats map[string]string // of "abstract level", and where the list is: its form
	lists   map[string]string // id -> abstract
	last    map[string]int    // number of "list level"
	now     string            // abstract, or list
	level   string
}

func (l *lists) start(name string, e xml.StartElement) {
	if len(l.formats)+len(l.lists) > maxStyles {
		return
	}
	switch name {
	case "abstractNum":
		l.now = attr(e, "abstractNumId")
	case "lvl":
		l.level = attr(e, "ilvl")
	case "numFmt":
		l.formats[l.now+" "+l.level] = attr(e, "val")
	case "num":
		l.now = attr(e, "numId")
	case "abstractNumId":
		l.lists[l.now] = attr(e, "val")
	}
}

func (*lists) end(string)  {}
func (*lists) text(string) {}
func (*lists) size() int   { return 0 }

// mark is what the next item of a list begins with.
func (l *lists) mark(list, level string) string {
	depth, _ := strconv.Atoi(level)
	depth = min(max(depth, 0), 8)
	indent := strings.Repeat("  ", depth)
	if format := l.formats[l.lists[list]+" "+strconv.Itoa(depth)]; format == "bullet" || format == "none" || format == "" {
		return indent + "- "
	}
	if len(l.last) > maxStyles {
		clear(l.last)
	}
	l.last[list+" "+strconv.Itoa(depth)]++
	for below := depth + 1; below < 9; below++ {
		delete(l.last, list+" "+strconv.Itoa(below))
	}
	return strings.Repeat("   ", depth) + strconv.Itoa(l.last[list+" "+strconv.Itoa(depth)]) + ". "
}
