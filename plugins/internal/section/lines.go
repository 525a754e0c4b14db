package section

import "strings"

// width is that of white space, with tabs to every fourth column.
func width(space string) int {
	n := 0
	for _, c := range space {
		n++
		if c == '\t' {
			n = (n + 3) / 4 * 4
		}
	}
	return n
}

// runOf is how many of c a line begins with.
func runOf(line string, c byte) int {
	n := 0
	for n < len(line) && line[n] == c {
		n++
	}
	return n
}

func isATX(line string) bool {
	n := runOf(line, '#')
	return n >= 1 && n <= 6 && (len(line) == n || line[n] == ' ' || line[n] == '\t')
}

// titleOf is the title of an ATX heading. Number signs close it behind white
// space only.
func titleOf(line string) string {
	title := strings.TrimSpace(line[runOf(line, '#'):])
	if t := strings.TrimRight(title, "#"); t == "" || strings.TrimRight(t, " \t") != t {
		return strings.TrimSpace(t)
	}
	return title
}

// fenceOf is the fence that a line opens, or "".
func fenceOf(line string) string {
	for _, c := range []byte("`~") {
		if n := runOf(line, c); n >= 3 && (c == '~' || !strings.Contains(line[n:], "`")) {
			return line[:n]
		}
	}
	return ""
}

// isItem says whether a line begins an item of a list.
func isItem(line string) bool {
	n := 0
	for n < len(line) && n < 9 && line[n] >= '0' && line[n] <= '9' {
		n++
	}
	marks := ".)"
	if n == 0 {
		marks = "-*+"
	}
	if n >= len(line) || !strings.ContainsRune(marks, rune(line[n])) {
		return false
	}
	return n+1 == len(line) || line[n+1] == ' ' || line[n+1] == '\t'
}

// isRule says whether a line is a horizontal rule.
func isRule(line string) bool {
	if !strings.ContainsRune("-*_", rune(line[0])) {
		return false
	}
	marks := strings.Count(line, line[:1])
	return marks >= 3 && marks+strings.Count(line, " ")+strings.Count(line, "\t") == len(line)
}

// isDelimiter says whether a line is the one below a table's head.
func isDelimiter(line string) bool {
	return strings.Contains(line, "|") && strings.Contains(line, "-") && strings.Trim(line, "|-: \t") == ""
}

// endOfHTML is what ends the HTML that a line opens in which nothing is
// Markdown, or "".
func endOfHTML(line string) string {
	if strings.HasPrefix(line, "<!--") {
		return "-->"
	}
	if line[0] != '<' {
		return ""
	}
	name := strings.ToLower(line[1:min(len(line), 12)])
	for _, tag := range []string{"pre", "script", "style", "textarea"} {
		if rest, ok := strings.CutPrefix(name, tag); ok && (rest == "" || strings.ContainsRune(" >\t", rune(rest[0]))) {
			return "</" + tag + ">"
		}
	}
	return ""
}
