package pretokenizer

import "fmt"

// behavior is what becomes of the matches of a delimiter.
type behavior byte

const (
	removed behavior = iota
	isolated
	contiguous         // neighbouring matches are one part
	mergedWithPrevious // a match ends the part before it
	mergedWithNext     // a match begins the part behind it
)

// UnmarshalText reads the name that the library has for a behavior.
func (b *behavior) UnmarshalText(text []byte) error {
	for i, name := range []string{"Removed", "Isolated", "Contiguous", "MergedWithPrevious", "MergedWithNext"} {
		if string(text) == name {
			*b = behavior(i)
			return nil
		}
	}
	return fmt.Errorf("behavior %q is not supported", text)
}

// splitter cuts one text at matches, which are told to it in order.
type splitter struct {
	behavior
	text   string
	first  bool
	yield  Part
	start  int  // of the part that is held back
	end    int  // up to where the text is read
	match  bool // whether what was read last is a match
	invert bool
}

// add reads up to byte end, which is a match or not.
func (s *splitter) add(end int, match bool) bool {
	if end == s.end {
		return true
	}
	match = match != s.invert
	at, last := s.end, s.match
	s.end, s.match = end, match
	switch s.behavior {
	case isolated:
		return s.part(at)
	case removed:
		if match {
			s.start = end
			return true
		}
		return s.part(at)
	case contiguous:
		if at > 0 && match != last {
			return s.part2(s.start, at)
		}
	case mergedWithPrevious:
		switch {
		case match && !last:
			return s.part(s.start)
		case s.start < at:
			return s.part2(s.start, at) && (!match || s.part(at))
		case match:
			return s.part(at)
		}
	case mergedWithNext:
		if !match {
			return s.part(s.start)
		}
		if s.start < at {
			return s.part2(s.start, at)
		}
	}
	return true
}

// part yields what was read from byte start on.
func (s *splitter) part(start int) bool { return s.part2(start, s.end) }

func (s *splitter) part2(start, end int) bool {
	s.start = end
	return s.yield(s.text[start:end], s.first && start == 0)
}

// close reads the rest, which is no match, and yields what was held back.
func (s *splitter) close() bool {
	if !s.add(len(s.text), false) {
		return false
	}
	if s.behavior != removed && s.start < len(s.text) {
		return s.part(s.start)
	}
	return true
}
