package office

import (
	"path"
	"strings"
	"time"
)

// DOCX reads a Word document. It is an apart.Reader.
func DOCX(raw []byte, most int64, stop time.Time) (text, title string, err error) {
	a, err := openArchive("DOCX", raw, most, stop)
	if err != nil {
		return "", "", err
	}
	main, err := a.main("word/document.xml")
	if err != nil {
		return "", "", err
	}
	folder := path.Dir(main)
	w := &word{
		styles: &styles{all: map[string]*style{}},
		lists:  &lists{formats: map[string]string{}, lists: map[string]string{}, last: map[string]int{}},
	}
	for _, part := range []struct {
		name string
		handler
		note string
	}{
		{folder + "/styles.xml", w.styles, ""}, {folder + "/numbering.xml", w.lists, ""}, {main, w, ""},
		{folder + "/footnotes.xml", w, footnote}, {folder + "/endnotes.xml", w, endnote},
	} {
		w.notes = part.note
		if err := a.read(part.name, part.handler); err != nil {
			return "", "", err
		}
		if part.name == main && a.root != "document" {
			return "", "", errNot("DOCX", "a Word document")
		}
	}
	return strings.TrimRight(strings.ToValidUTF8(w.out.String(), "\uFFFD"), "\n") + "\n", a.title(), nil
}
