package document

import (
	"strconv"
	"strings"
	"unicode"
)

// This file removes tables of contents from the text of a PDF: any question would find them. An entry is a line of
// words that ends with the number of a page of the file. Three entries with leaders of dots are a table of contents, or
// an index. Without leaders, a table needs at least five entries. Their numbers must never fall and must reach the
// second half of the file, as in few other tables.

const fewLeaders, fewEntries, mostBetween = 3, 5, 2 // lines between two entries: a title on two lines, the head of a page

// withoutContents replaces each table of contents by its form feeds, and reports whether there was one.
func withoutContents(text string) (rest string, found bool) {
	pages, lines := strings.Count(text, "\f")+1, strings.Split(text, "\n")
	var entries []int // lines that may form a table of contents
	leaders, last, gap, between := 0, 0, 0, 0
	leave := func() {
		n := len(entries)
		if between <= n/2 && (leaders >= fewLeaders && 2*leaders >= n || n >= fewEntries && 2*last > pages) {
			found = true
			for i := entries[0]; i <= entries[n-1]; i++ {
				lines[i] = strings.Repeat("\f", strings.Count(lines[i], "\f"))
			}
		}
		entries, leaders, gap, between = nil, 0, 0, 0
	}
	for i, line := range lines {
		number, leader, ok := contentsEntry(line)
		switch {
		case !ok || number > pages:
			if strings.ContainsFunc(line, unicode.IsLetter) {
				gap++
			}
			continue
		case len(entries) > 0 && (number < last && !leader || gap > mostBetween):
			leave()
		case len(entries) > 0:
			between += gap
		}
		entries, last, gap = append(entries, i), number, 0
		if leader {
			leaders++
		}
	}
	leave()
	return strings.Join(lines, "\n"), found
}

// contentsEntry returns the number at the end of a line of words, and whether a leader is before it.
func contentsEntry(line string) (number int, leader, ok bool) {
	line = strings.TrimSpace(line)
	title := strings.TrimRight(line, "0123456789")
	number, err := strconv.Atoi(line[len(title):])
	words := strings.TrimRight(title, " .:·…_")
	dots := strings.ReplaceAll(strings.ReplaceAll(title[len(words):], " ", ""), "…", "...")
	leader = len(dots) >= fewLeaders
	return number, leader, err == nil && number > 0 && (leader || dots == "" && words != title) && strings.ContainsFunc(words, unicode.IsLetter)
}
