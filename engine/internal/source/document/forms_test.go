package document

import (
	"archive/zip"
	"bytes"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// packed makes a zip file of parts.
func packed(t *testing.T, parts map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, content := range parts {
		f, err := w.Create(name)
		if err == nil {
			_, err = f.Write([]byte(content))
		}
		must.Do(t, err)
	}
	must.Do(t, w.Close())
	return b.String()
}

func workbook(t *testing.T) string {
	t.Helper()
	f, b := excelize.NewFile(), bytes.Buffer{}
	for at, value := range map[string]any{"A1": "card", "B1": "fee", "A2": "gold", "B2": 10} {
		must.Do(t, f.SetCellValue("Sheet1", at, value))
	}
	must.Do(t, f.Write(&b))
	return b.String()
}

// TestForms reads a folder with a file of each format. Each file is read correctly, or refused with
// advice.
func TestForms(t *testing.T) {
	docx := packed(t, map[string]string{"word/document.xml": `<w:document xmlns:w="w"><w:body><w:p><w:pPr><w:outlineLvl w:val="0"/></w:pPr><w:r><w:t>Cards</w:t></w:r></w:p><w:p><w:r><w:t>A lost card.</w:t></w:r></w:p></w:body></w:document>`})
	page := `<title>Fees</title><nav><a href=1>Home</a></nav><main><h1>Cards</h1><p>A lost card is blocked at once, and a new one comes by mail.</main>`
	files := map[string]struct{ content, text, title, format, fault string }{
		"a.docx":  {content: docx, text: "# Cards\n\nA lost card.\n", title: "Cards", format: "docx"},
		"a.DOCM":  {content: docx, text: "# Cards\n\nA lost card.\n", title: "Cards", format: "docx"},
		"a.pptx":  {content: packed(t, map[string]string{"ppt/presentation.xml": `<p:presentation xmlns:p="p" xmlns:r="r"><p:sldId id="1" r:id="r1"/></p:presentation>`, "ppt/_rels/presentation.xml.rels": `<Relationships><Relationship Id="r1" Type="x/slide" Target="slides/slide1.xml"/></Relationships>`, "ppt/slides/slide1.xml": `<p:sld xmlns:p="p" xmlns:a="a"><p:sp><p:ph type="title"/><a:p><a:r><a:t>Cards</a:t></a:r></a:p></p:sp></p:sld>`}), text: "## Slide 1: Cards\n", title: "Cards", format: "pptx"},
		"a.xlsx":  {content: workbook(t), text: "## Sheet1\n\n| card | fee |\n|---|---|\n| gold | 10 |\n", title: "a.xlsx", format: "xlsx"},
		"a.ipynb": {content: `{"cells": [{"cell_type": "markdown", "source": ["# Cards"]}]}`, text: "# Cards\n", title: "Cards", format: "notebook"},
		"a.eml":   {content: "Subject: Cards\nContent-Type: text/plain; charset=latin1\n\ncaf\xe9", text: "Subject: Cards\n\ncafé\n", title: "Cards", format: "mail"},
		"a.html":  {content: page, text: "# Cards\n\nA lost card is blocked at once, and a new one comes by mail.\n", title: "Fees", format: "html"},
		"a.epub":  {content: string(epub(t, "<manifest>"+bookPages+"</manifest><spine><itemref idref='one'/></spine>", "OEBPS/text/one.xhtml", pageOne)), text: "## Water\n\nIt is changed\non Mondays.\n\nA note.\n", title: "Water", format: "epub"},
		"a.doc":   {content: "\xd0\xcf\x11\xe0", fault: "save it as .docx"},
		"a.rtf":   {content: `{\rtf1 text}`, fault: "save it as .docx"},
		"a.xls":   {content: "\xd0\xcf\x11\xe0", fault: "save it as .xlsx"},
		"a.odp":   {content: "PK", fault: "save it as .pptx"},
		"a.msg":   {content: "\xd0\xcf\x11\xe0", fault: "save it as .eml"},
		"b.docx":  {content: "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 encrypted", fault: "without a password"},
		"b.pptx":  {content: docx, fault: "not a presentation"},
		"b.xlsx":  {content: docx, fault: "save it anew"},
		"b.epub":  {content: docx, fault: "not an e-book"},
		"b.ipynb": {content: "{", fault: "save it anew"},
		"b.eml":   {content: "no mail at all", fault: "save it anew"},
		"b.pdf":   {content: "%PDF-1.7", fault: "leave it out"},
	}
	content := map[string]string{}
	for name, f := range files {
		content[name] = f.content
	}
	path := folder(t, content)
	dir := open(t, Set{Path: path})
	listed, err := dir.List(t.Context())
	if err != nil || len(listed) != len(files) {
		t.Fatalf("%d files listed, %v", len(listed), err)
	}
	for _, file := range listed {
		want := files[file.ID]
		d, _, err := dir.Read(t.Context(), file.ID)
		if want.fault != "" {
			if err == nil || !strings.Contains(err.Error(), want.fault) || !strings.Contains(err.Error(), "save") && !strings.Contains(err.Error(), "exclude") {
				t.Errorf("%s: got %v, want %q", file.ID, err, want.fault)
			}
			continue
		}
		if err != nil || d.Text != want.text || d.Meta["title"] != want.title || d.Meta["format"] != want.format {
			t.Errorf("%s: got %q %v, %v", file.ID, d.Text, d.Meta, err)
		}
	}
	if d, _, err := open(t, Set{Path: path, HTML: "all"}).Read(t.Context(), "a.html"); err != nil || !strings.Contains(d.Text, "Home") {
		t.Errorf("all of a page: %q, %v", d.Text, err)
	}
	for name, want := range map[string]bool{"a.docx": true, "a.xlsx": false, "a.eml": true, "a.epub": true, "a.doc": false} {
		if got := Is(path + "/" + name); got != want {
			t.Errorf("%s names documents beyond doubt: %v", name, got)
		}
	}
}
