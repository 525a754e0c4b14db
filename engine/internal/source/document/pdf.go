package document

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/enums"
	pdfiumerrors "github.com/klippa-app/go-pdfium/errors"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
)

// This file reads the text of PDF files by PDFium, which finds words, lines and hyphens. Pages are separated by a form feed.
// Text in pictures is missing.

// Names of the counted kinds of pages: pages that are not read, or read incorrectly.
const (
	pagePictures = "page of pictures"
	pageBroken   = "page that cannot be read"
	pageUnnamed  = "page of letters without names"
)

const mostPages = 8 // page numbers in a note

// readPDF reads a PDF. There is a form feed between pages.
func readPDF(q request) (r reply, err error) {
	stop := time.Now().Add(q.Within)
	pool, err := instances()
	if err != nil {
		return r, err
	}
	in, err := pool.GetInstance(q.Within)
	if err != nil {
		return r, fmt.Errorf("start PDFium: %w", err)
	}
	defer in.Kill() //nolint:errcheck // what is left of it holds nothing
	opened, err := in.OpenDocument(&requests.OpenDocument{File: &q.Raw})
	switch {
	case errors.Is(err, pdfiumerrors.ErrPassword), errors.Is(err, pdfiumerrors.ErrSecurity):
		return r, errors.New("its PDF is encrypted; save it without a password, or leave it out with exclude")
	case err != nil:
		return r, errors.New("its PDF cannot be read: it is damaged; leave it out with exclude")
	}
	file := &pdfFile{Pdfium: in, document: opened.Document, doubt: mostDoubt}
	var b strings.Builder
	unread := map[string][]string{} // pages, by kind
	for n := range sure(in.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: file.document})).PageCount {
		if n > 0 {
			b.WriteString("\n\f")
		}
		lines, note := file.page(n)
		if note != "" {
			unread[note] = append(unread[note], strconv.Itoa(n+1))
		}
		writeLines(&b, inColumns(lines, 0))
		if time.Now().After(stop) || int64(b.Len()) > q.Most {
			return r, tooLong("PDF")
		}
	}
	r.Unread = Unread{}
	for note, pages := range unread {
		r.Unread[note+" ("+strings.Join(pages[:min(len(pages), mostPages)], ", ")+")"] = len(pages)
	}
	if strings.TrimSpace(b.String()) == "" {
		return r, fmt.Errorf("its PDF holds no text (%s); recognise its text (OCR) first, or leave it out with exclude",
			cmp.Or(r.Unread.String(), "its pages are empty"))
	}
	if meta, err := in.FPDF_GetMetaText(&requests.FPDF_GetMetaText{Document: file.document, Tag: "Title"}); err == nil {
		r.Title = strings.ToValidUTF8(strings.Join(strings.Fields(meta.Value), " "), "\uFFFD")
	}
	r.Text = unhyphenated(strings.ToValidUTF8(b.String(), "\uFFFD"))
	return r, nil
}

func sure[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// pdfFile is an open file.
type pdfFile struct {
	pdfium.Pdfium
	document references.FPDF_DOCUMENT
	doubt    int // how many more words to check for spaces

	text           references.FPDF_TEXTPAGE // of the current page, as the following fields
	lines          [][]piece
	words, unknown int // and characters that are none
}

// hyphen replaces a hyphen at the end of a line that may have been inserted to break a word.
const hyphen = "\x02"

// In some files PDFium misses spaces; in others it adds too many spaces and line ends.
const (
	leastSpace = 0.1  // width of a space, relative to the height of the text
	sameLine   = 0.3  // highest distance between the feet of a line's letters, also relative
	otherLine  = 0.8  // lowest distance between two lines, which an exponent does not reach
	mostDoubt  = 2000 // after this many words without a space in them, only one word in rareDoubt is checked
	rareDoubt  = 8
)

// page returns the lines of a page, and a note on what was not read.
func (f *pdfFile) page(n int) (lines [][]piece, note string) {
	loaded, err := f.FPDF_LoadPage(&requests.FPDF_LoadPage{Document: f.document, Index: n})
	if err != nil {
		return nil, pageBroken
	}
	page := requests.Page{ByReference: &loaded.Page}
	defer f.FPDF_ClosePage(&requests.FPDF_ClosePage{Page: loaded.Page}) //nolint:errcheck // nothing depends on it
	text, err := f.FPDFText_LoadPage(&requests.FPDFText_LoadPage{Page: page})
	if err != nil {
		return nil, pageBroken
	}
	defer f.FPDFText_ClosePage(&requests.FPDFText_ClosePage{TextPage: text.TextPage}) //nolint:errcheck // as above
	f.text, f.lines, f.words, f.unknown = text.TextPage, nil, 0, 0
	switch f.read(); {
	case 3*f.unknown > f.words: // glyphs without names, the third of which is a space
		note = pageUnnamed
	case len(f.lines) == 0 && f.shows(page):
		note = pagePictures
	}
	return f.lines, note
}

// fewShapes is how many shapes an empty page may have, such as rules.
const fewShapes = 20

// shows reports whether a page shows something that may have text.
func (f *pdfFile) shows(page requests.Page) bool {
	n := sure(f.FPDFPage_CountObjects(&requests.FPDFPage_CountObjects{Page: page})).Count
	for i := range min(n, fewShapes) {
		object := sure(f.FPDFPage_GetObject(&requests.FPDFPage_GetObject{Page: page, Index: i})).PageObject
		if kind := sure(f.FPDFPageObj_GetType(&requests.FPDFPageObj_GetType{PageObject: object})).Type; kind == enums.FPDF_PAGEOBJ_IMAGE || kind == enums.FPDF_PAGEOBJ_FORM {
			return true
		}
	}
	return n > fewShapes
}

// read reads the lines of the page.
func (f *pdfFile) read() {
	var word []rune
	fresh := true // the next word begins a line
	n := sure(f.FPDFText_CountChars(&requests.FPDFText_CountChars{TextPage: f.text})).Count
	for i := range n + 1 {
		r := '\n'
		if i < n {
			r = rune(sure(f.FPDFText_GetUnicode(&requests.FPDFText_GetUnicode{TextPage: f.text, Index: i})).Unicode) //nolint:gosec // a character
		}
		broken := string(r) == hyphen
		if broken || unicode.IsPrint(r) && !unicode.IsSpace(r) || unicode.Is(unicode.Co, r) {
			if word = append(word, r); !broken {
				continue
			}
			i++
		}
		if len(word) > 0 {
			f.add(word, i-len(word), fresh)
			word, fresh = word[:0], false
		}
		fresh = fresh || broken || r == '\n'
		if unicode.IsControl(r) && !unicode.IsSpace(r) && !broken {
			f.unknown++
		}
	}
}

// add adds what PDFium reports as a word, starting at a character. It splits the word at spaces in it.
func (f *pdfFile) add(word []rune, at int, fresh bool) {
	spacing, from := 0.0, 0 // letters may be spaced
	if f.doubt--; len(word) > 1 && (f.doubt > 0 || f.doubt%rareDoubt == 0) {
		gaps := make([]float64, len(word)) // before each letter
		before := f.box(at)
		least := leastSpace * before.high
		for i := range word[1:] {
			box := f.box(at + i + 1)
			gaps[i+1], before = box.x-before.endX, box
		}
		spacing = max(0, slices.Min(gaps[1:]))
		for i, gap := range gaps {
			if gap > spacing+least {
				f.put(word[from:i], at+from, spacing, fresh)
				from, fresh, f.doubt = i, false, mostDoubt
			}
		}
		if spacing > least {
			f.doubt = mostDoubt
		}
	}
	f.put(word[from:], at+from, spacing, fresh)
}

// put puts a word on a line. It starts another line if the word begins a line, or is far from the last word.
func (f *pdfFile) put(word []rune, at int, spacing float64, fresh bool) {
	p := f.box(at)
	p.text, p.endX, p.spacing = string(word), max(p.endX, f.box(at+len(word)-1).endX), spacing
	angle := float64(sure(f.FPDFText_GetCharAngle(&requests.FPDFText_GetCharAngle{TextPage: f.text, Index: at})).CharAngle)
	p.turned = math.Cos(angle) < 0.99
	f.words++
	last := len(f.lines) - 1
	if last < 0 {
		f.lines = append(f.lines, []piece{p})
		return
	}
	line := f.lines[last]
	before := &line[len(line)-1]
	gap, apart := p.x-before.endX, math.Abs(p.y-before.y)/max(p.high, before.high)
	beside := !p.turned && !before.turned && apart < sameLine && gap > -leastSpace*p.high && !strings.HasSuffix(before.text, hyphen)
	switch {
	case beside && gap < p.spacing+leastSpace*p.high:
		before.text, before.endX = before.text+p.text, p.endX
	case !beside && fresh, !p.turned && apart > otherLine:
		f.lines = append(f.lines, []piece{p})
	default:
		f.lines[last] = append(line, p)
	}
}

// box returns the place of a character, with the space around it that its font gives it. It is zero if the character
// has no place.
func (f *pdfFile) box(at int) (p piece) {
	if b, err := f.FPDFText_GetLooseCharBox(&requests.FPDFText_GetLooseCharBox{TextPage: f.text, Index: at}); err == nil {
		p.x, p.endX, p.y, p.high = float64(b.Rect.Left), float64(b.Rect.Right), float64(b.Rect.Bottom), float64(b.Rect.Top-b.Rect.Bottom)
	}
	return p
}

// writeLines writes lines, with an empty line where the page has space for one.
func writeLines(b *strings.Builder, lines [][]piece) {
	for i, line := range lines {
		if i > 0 {
			b.WriteByte('\n')
			if math.Abs(lines[i-1][0].y-line[0].y) > 1.8*line[0].high {
				b.WriteByte('\n')
			}
		}
		for j, w := range line {
			if j > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(w.text)
		}
	}
}

// unhyphenated joins words that a hyphen breaks at the end of a line; the line then ends behind the word. The hyphen
// stays if the text has the hyphenated word elsewhere. It also stays if the text has both halves as words but not the
// joined word.
func unhyphenated(text string) string {
	text = strings.ReplaceAll(text, hyphen+"\n", hyphen)
	words := map[string]bool{}
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !strings.ContainsRune("-"+hyphen, r) }) {
		words[w], words[strings.ToLower(w)] = true, true
	}
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, hyphen)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		left, right := before[len(strings.TrimRightFunc(before, unicode.IsLetter)):], after[:len(after)-len(strings.TrimLeftFunc(after, unicode.IsLetter))]
		text = after
		if upper := strings.IndexFunc(right, unicode.IsUpper) == 0; left == "" || right == "" || upper {
			b.WriteString("-\n")
			continue
		}
		lower, whole := strings.ToLower(left), strings.ToLower(left+right)
		if !words[whole] && (words[lower+"-"+right] || min(len(left), len(right)) >= shortHalf && words[lower] && words[right]) {
			b.WriteByte('-')
		}
		if end := strings.IndexFunc(after, unicode.IsSpace); end >= 0 && !strings.Contains(after[:end], hyphen) {
			b.WriteString(after[:end] + "\n")
			text = after[end+1:]
		}
	}
}

// shortHalf is the fewest letters of a half that counts as a word: "in-form" may be "inform".
const shortHalf = 3
