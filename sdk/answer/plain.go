package answer

import (
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// found is a label in a text.
type found struct {
	label    string // "": that none fits
	from, to int    // where it stands
	reading  string
}

// reading is what a text says.
type reading struct {
	labels      []found
	explanation string
	reason      string // why it is no answer; empty: it is one
}

func unreadable(reason string) reading { return reading{reason: reason} }

// severalLabels is the reason of a text that could mean any of them.
const severalLabels = "it names several labels"

// reader reads the answers to a prompt.
type reader struct {
	Options
	fields []string
	names
}

func newReader(p sdk.Prompt, o Options) *reader {
	return &reader{Options: o, fields: p.Fields, names: names{labels: p.Labels, none: p.None}}
}

// maps reports whether a text may be taken for a label that it is not letter by letter.
func (r *reader) maps() bool { return !r.Exact && len(r.labels) > 0 }

// read reads a whole text.
func (r *reader) read(text string) reading {
	text = written(text)
	if strings.TrimSpace(text) == "" {
		return unreadable(Nothing)
	}
	if r.fields != nil {
		return r.object(text)
	}
	return r.text(text)
}

// text reads the answer to a prompt that asks for a line.
func (r *reader) text(text string) reading {
	from, to := firstLine(text, 0)
	line := found{label: text[from:to], from: from, to: to}
	if name, ok := r.exact(line.label); ok {
		if r.maps() && r.list(text) {
			return unreadable(severalLabels)
		}
		return r.as(line, name, "")
	}
	if r.maps() {
		if read, ok := r.plain(text); ok {
			return read
		}
		if read, ok := r.inObject(text); ok {
			return read.how("from JSON")
		}
	}
	return r.close(line)
}

// as is the reading of a part of a text as a name.
func (r *reader) as(f found, name, how string) reading {
	if f.label, f.reading = name, how; name == r.none {
		f.label = ""
	}
	return reading{labels: []found{f}}
}

// close reads a text that is no label as the nearest one, where Options want that, or
// leaves it as it is.
func (r *reader) close(f found) reading {
	if r.Nearest > 0 {
		all := r.labels
		if r.none != "" {
			all = append(all[:len(all):len(all)], r.none)
		}
		if name, ok := nearest(f.label, all, r.Nearest); ok {
			return r.as(f, name, "nearest")
		}
	}
	return reading{labels: []found{f}}
}

// firstLine returns the first line from a place on that is not empty.
func firstLine(text string, at int) (from, to int) {
	from, _ = trim(text, at, len(text))
	to = len(text)
	if n := strings.IndexByte(text[from:], '\n'); n >= 0 {
		to = from + n
	}
	return trim(text, from, to)
}

// lines calls f with where the lines of a text stand that are not empty.
func lines(text string, f func(from, to int)) {
	for at := 0; ; {
		from, to := firstLine(text, at)
		if from == to {
			return
		}
		f(from, to)
		at = to
	}
}

// The most that a label is found in: pairs of quotes and the like, and bytes more than the
// longest label.
const (
	maxPeels  = 6
	maxAround = 64
)

// match returns the name that a part of a text stands for, if need be without quotes and a full
// stop, and where it stands. raw is the text with its markup.
func (r *reader) match(raw, text string, from, to int) (f found, ok bool) {
	var how []string
	if from, to = trim(raw, from, to); from < to {
		if name, ok := r.exact(raw[from:to]); ok {
			return found{name, from, to, ""}, true
		}
	}
	start, end := trim(text, from, to)
	if start != from || end != to || raw[start:end] != text[start:end] {
		how = append(how, "without markup")
	}
	from, to = start, end
	for range maxPeels {
		if from, to = trim(text, from, to); from == to || to-from > r.longestName()+maxAround {
			break
		}
		part := text[from:to]
		name, ok := r.exact(part)
		if !ok {
			var folded string
			if name, folded, ok = r.same(part); ok {
				how = append(how, folded)
			}
		}
		if ok {
			return found{name, from, to, strings.Join(how, ", ")}, true
		}
		a, b, what, ok := peel(part)
		if !ok {
			break
		}
		if from, to = from+a, from+b; !slices.Contains(how, "without "+what) {
			how = append(how, "without "+what)
		}
	}
	return found{}, false
}

// plain reads a text as people would: its first line with markup, quotes and the like, or a
// label behind a prefix.
func (r *reader) plain(raw string) (reading, bool) {
	text, how := raw, ""
	from, to := trim(text, 0, len(text))
	for range maxPeels { // <answer>label</answer>
		m := element.FindStringSubmatchIndex(text[from:to])
		if m == nil || text[from+m[2]:from+m[3]] != text[from+m[6]:from+m[7]] || denies(text[from+m[2]:from+m[3]]) {
			break
		}
		from, to = trim(text, from+m[4], from+m[5])
		how = "from an element"
	}
	out := []byte(text)
	space(out[:from])
	space(out[to:])
	for _, m := range fenceLine.FindAllSubmatchIndex(out, -1) {
		if _, ok := r.folds()[fold(text[m[2]:m[3]])]; !ok || m[2] == m[3] {
			space(out[m[0]:m[1]])
			how = "from a fence"
		}
	}
	raw = string(out)
	lines(raw, func(from, to int) { copy(out[from:], unmark(raw[from:to])) })
	text = string(out)
	if from, to = firstLine(raw, 0); from == to {
		return reading{}, false
	}
	f, ok := r.match(raw, text, from, to)
	if ok {
		if r.another(raw, text, f.label) {
			return unreadable(severalLabels), true
		}
	} else if f, ok = r.prefixed(raw, text); !ok {
		return reading{}, false
	}
	return r.as(f, f.label, strings.Trim(how+", "+f.reading, ", ")), true
}

// list reports whether all lines of a text are labels, and not all the same.
func (r *reader) list(text string) bool {
	all, seen := true, map[string]bool{}
	lines(text, func(from, to int) {
		f, ok := r.match(text, text, from, to)
		all = all && ok
		seen[f.label] = true
	})
	return all && len(seen) > 1
}

// another reports whether a line of a text is another name than this.
func (r *reader) another(raw, text, name string) bool {
	is := false
	lines(raw, func(from, to int) {
		f, ok := r.match(raw, text, from, to)
		is = is || ok && f.label != name
	})
	return is
}
