package context

import (
	"path"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/racflow/racflow/plugins/internal/delimit"
	"github.com/racflow/racflow/plugins/internal/fewshot"
	"github.com/racflow/racflow/sdk"
)

const (
	leastTokens = 1000
	headShare   = 8    // of a document that is shown in part its beginning has at most this part
	maxHead     = 2000 // and so many characters
	maxName     = 300  // characters of a title, and of a path
	leftOut     = "[A part of the document is left out here.]"
)

const (
	documentTag = "document"
	chunkTag    = "chunk"
)

var delimiters = delimit.New(documentTag, chunkTag)

// view shows a document as a whole, or through a grid of windows.
type view struct {
	document *sdk.Document
	path     bool  // shown, whatever the title says
	head     int   // bytes of the beginning, shown before each window but the first
	steps    []int // where the steps of the grid begin, and the end of the text; two steps are a window. nil: as a whole
}

// newView is the view that shows at most so many tokens of a document.
func newView(document *sdk.Document, tokens int) view {
	v := view{document: document}
	text, most := document.Text, sdk.CharactersPerToken*tokens
	if len(text) <= most || utf8.RuneCountInString(text) <= most {
		return v
	}
	head := min(most/headShare, maxHead)
	step := (most - head) / 2
	n := 0
	for i := range text {
		if n == head {
			v.head = breakBefore(text, i)
		}
		if n%step == 0 {
			v.steps = append(v.steps, breakBefore(text, i))
		}
		n++
	}
	v.steps = append(v.steps, len(text))
	return v
}

// breakBefore is the last place before i, or i itself, that is behind white space,
// if there is one near.
func breakBefore(text string, i int) int {
	const near = 100
	for j := i; j > max(0, i-near); {
		r, n := utf8.DecodeLastRuneInString(text[:j])
		if unicode.IsSpace(r) {
			return j
		}
		j -= n
	}
	return i
}

// window is the number of the window in whose middle half the middle of a passage lies,
// or the nearest at the ends of the document. 0 where there is but one.
func (v view) window(p sdk.Chunk) int {
	last := len(v.steps) - 3
	if last < 0 {
		return 0
	}
	middle := (p.Start + p.End) / 2
	step := sort.SearchInts(v.steps, middle+1) - 1
	if step+1 < len(v.steps) && middle < (v.steps[step]+v.steps[step+1])/2 {
		step--
	}
	return min(max(0, step), last)
}

// show writes what a window shows of the document.
func (v view) show(window int) string {
	var out strings.Builder
	title, _ := v.document.Meta["title"].(string)
	file, _ := v.document.Meta["path"].(string)
	if !v.path && strings.TrimSpace(title) != "" && title != path.Base(file) {
		file = "" // the content names the document, so that it may be renamed without being asked about again
	}
	for _, line := range [][2]string{{"Title", title}, {"Path", file}} {
		if strings.TrimSpace(line[1]) != "" {
			out.WriteString(line[0] + ": " + fewshot.Clip(fewshot.OneLine(line[1]), maxName) + "\n")
		}
	}
	text := v.document.Text
	if v.steps == nil {
		out.WriteString(text)
		return delimiters.Wrap(documentTag, out.String())
	}
	if window > 0 {
		out.WriteString(text[:v.head] + "\n" + leftOut + "\n")
	}
	out.WriteString(text[v.steps[window]:v.steps[window+2]])
	if window+3 < len(v.steps) {
		out.WriteString("\n" + leftOut)
	}
	return delimiters.Wrap(documentTag, out.String())
}
