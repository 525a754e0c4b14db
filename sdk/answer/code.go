package answer

import "strings"

// withoutCode replaces the code in a Markdown text by spaces: fenced blocks, and in
// paragraphs what stands between two runs of equally many backticks (CommonMark 0.31,
// sections 4.5 and 6.1). An unclosed fence extends to the end. Indented blocks count as
// text, since lists are indented, too.
func withoutCode(text string) string {
	if !strings.ContainsAny(text, "`~") {
		return text
	}
	out := []byte(text)
	fence, paragraph := "", 0
	for start := 0; start < len(text); {
		end := start + len(text[start:])
		if n := strings.IndexByte(text[start:], '\n'); n >= 0 {
			end = start + n + 1
		}
		line := text[start:end]
		mark := fenceOf(line)
		switch {
		case fence != "":
			blank(out[start:end])
			if strings.HasPrefix(mark, fence) && strings.TrimSpace(line) == mark {
				fence = ""
			}
			paragraph = end
		case mark != "":
			fence = mark
			blankSpans(out[paragraph:start])
			blank(out[start:end])
		case strings.TrimSpace(line) == "":
			blankSpans(out[paragraph:start])
			paragraph = end
		}
		start = end
	}
	if fence == "" {
		blankSpans(out[paragraph:])
	}
	return string(out)
}

// fenceOf returns the run of at least three backticks or tildes that a line begins
// with, behind at most three spaces; empty: there is none.
func fenceOf(line string) string {
	trimmed := strings.TrimLeft(line, " ")
	if trimmed == "" || len(line)-len(trimmed) > 3 || trimmed[0] != '`' && trimmed[0] != '~' {
		return ""
	}
	n := len(trimmed) - len(strings.TrimLeft(trimmed, trimmed[:1]))
	if n < 3 || trimmed[0] == '`' && strings.Contains(trimmed[n:], "`") {
		return "" // the latter is a span of code
	}
	return trimmed[:n]
}

// blankSpans blanks what stands between two runs of equally many backticks.
func blankSpans(paragraph []byte) {
	type run struct{ at, n, closing int } // closing is the index of the next run of its length
	var runs []run
	for at := 0; at < len(paragraph); at++ {
		n := 0
		for at+n < len(paragraph) && paragraph[at+n] == '`' {
			n++
		}
		if n > 0 {
			runs = append(runs, run{at, n, -1})
			at += n
		}
	}
	next := map[int]int{} // by length
	for i := len(runs) - 1; i >= 0; i-- {
		if closing, ok := next[runs[i].n]; ok {
			runs[i].closing = closing
		}
		next[runs[i].n] = i
	}
	for i := 0; i < len(runs); i++ {
		if r := runs[i]; r.closing > 0 {
			i = r.closing
			blank(paragraph[r.at : runs[i].at+r.n])
		}
	}
}

func blank(text []byte) {
	for i, c := range text {
		if c != '\n' {
			text[i] = ' '
		}
	}
}
