package source

import (
	"slices"
	"strings"
	"unicode"
)

// usual are names that columns often have, the likeliest first.
var usual = struct{ id, text, label []string }{
	id: []string{"id", "uuid", "guid", "rowid", "itemid", "messageid", "exampleid", "docid", "idx", "index", "nr", "no"},
	text: []string{"text", "utterance", "sentence", "query", "question", "message", "body", "content", "input", "prompt", "document", "review", "comment",
		"tweet", "post", "phrase", "request", "transcript", "description", "passage", "email", "mail", "subject", "title", "summary"},
	label: []string{"label", "intent", "category", "class", "target", "topic", "tag", "sentiment", "emotion", "answer", "expected", "goldlabel", "type", "y"},
}

// about are last words of names of columns that say something about the first.
var about = []string{"id", "nr", "no", "key", "count", "date", "time", "length", "len", "lang", "language", "type", "source", "url", "hash", "version", "score"}

// Guess says which columns of a file hold what, as far as that can be told: by their names
// and, where no name tells, by their values. Texts are long and differ, labels are few and
// come again, ids are short and differ.
func Guess(s Seen) Mapping {
	names := make([]string, len(s.Columns))
	for i, c := range s.Columns {
		names[i] = c.Name
	}
	m := byName(names)
	taken := func(c Column) bool { return c.Name == m.ID || c.Name == m.Text || c.Name == m.Label }
	best := func(worth func(Column) float64) string {
		name, most := "", 0.0
		for _, c := range s.Columns {
			if w := worth(c); w > most && !taken(c) {
				name, most = c.Name, w
			}
		}
		return name
	}
	if m.Text == "" {
		m.Text = best(func(c Column) float64 {
			if c.Numeric || 2*c.Distinct < s.Rows-c.Empty {
				return 0
			}
			return float64(c.MedianLength)
		})
	}
	if m.Label == "" {
		m.Label = best(func(c Column) float64 {
			if filled := s.Rows - c.Empty; c.Distinct < 2 || 3*c.Distinct > filled || 2*filled < s.Rows || c.LongestLength > 100 {
				return 0
			} else if c.Numeric { // a count or a score, rather
				return float64(c.Distinct) / float64(filled) / 1000
			}
			return float64(c.Distinct)
		})
	}
	if m.ID == "" {
		m.ID = best(func(c Column) float64 {
			if c.Empty > 0 || c.Distinct < s.Rows || c.Distinct < 2 || c.LongestLength > 64 ||
				slices.ContainsFunc(c.Values, func(v string) bool { return strings.ContainsFunc(v, unicode.IsSpace) }) {
				return 0
			}
			return 1 / float64(1+c.MedianLength)
		})
	}
	return m
}

// Usual reports whether a column is called as those of texts or labels often are.
func Usual(name string) bool {
	return slices.ContainsFunc(slices.Concat(usual.text, usual.label), func(word string) bool { return says(name, word, true) })
}

// byName is the mapping that names of columns propose.
func byName(names []string) (m Mapping) {
	take := func(usual []string) string {
		for _, part := range []bool{false, true} {
			for _, word := range usual {
				for _, name := range names {
					if name != m.Text && name != m.Label && name != m.ID && says(name, word, part) {
						return name
					}
				}
			}
		}
		return ""
	}
	m.Text = take(usual.text)
	m.Label = take(usual.label)
	m.ID = take(usual.id)
	return m
}

// says reports whether a name is a word, or where a part will do, has it as its first or last
// word. Of a path, the last member counts.
func says(name, word string, part bool) bool {
	if at := strings.LastIndexByte(name, '.'); at >= 0 {
		name = name[at+1:]
	}
	words := strings.FieldsFunc(spelt(name), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if len(words) == 0 {
		return false
	}
	is := func(text string) bool { return text == word || text == word+"s" }
	last := words[len(words)-1]
	return is(strings.Join(words, "")) || part && len(word) > 1 && (is(last) || is(words[0]) && !slices.Contains(about, last))
}

// spelt is a name in lower case, with a space before each capital that begins a word.
func spelt(name string) string {
	var b strings.Builder
	before := ' '
	for _, r := range name {
		if unicode.IsUpper(r) && unicode.IsLower(before) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
		before = r
	}
	return b.String()
}
