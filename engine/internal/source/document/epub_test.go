package document

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// epub returns an e-book with the given package document and further parts: name, content, name, content ...
func epub(t testing.TB, opf string, parts ...string) []byte {
	t.Helper()
	return zipped(t, append([]string{
		"META-INF/container.xml", `<container><rootfiles><rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>`,
		"OEBPS/book.opf", `<package xmlns="http://www.idpf.org/2007/opf">` + opf + `</package>`,
	}, parts...)...)
}

const (
	bookMeta  = `<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>The <b>keeping</b>  of fish</dc:title><dc:title>A subtitle</dc:title></metadata>`
	bookPages = `<item id="one" href="text/one.xhtml" media-type="application/xhtml+xml"/><item id="two" href="text/two%20of%20them.xhtml" media-type="application/xhtml+xml"/>` +
		`<item id="pic" href="cover.svg" media-type="image/svg+xml"/>`
	bookSpine = `<spine toc="ncx"><itemref idref="pic"/><itemref idref="nav"/><itemref idref="two"/><itemref idref="one" linear="no"/><itemref idref="none"/></spine>`
	pageOne   = `<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title/><script src="x.js"/></head><body><a id="top"/><h2>Water</h2><p>It is changed<br/>on Mondays.</p><aside>A note.</aside></body></html>`
	pageTwo   = `<html><body><p class="name">Food</p><p>They eat in the morning.</p></body></html>`
	navPage   = `<html xmlns:epub="e"><head><title>Contents</title></head><body><nav epub:type="page-list"><a href="text/one.xhtml">7</a><a href="text/two%20of%20them.xhtml">9</a></nav>` +
		`<nav epub:type="toc"><ol><li><a href="text/one.xhtml#top">Of <i>water</i></a></li><li><a href="text/two%20of%20them.xhtml">What they   eat</a></li><li><a href="text/two%20of%20them.xhtml#b">Later</a></li></ol></nav></body></html>`
	navNCX = `<ncx><docTitle><text>No name of a page</text></docTitle><navMap><navPoint><navLabel><text>What they eat</text></navLabel><content src="text/two%20of%20them.xhtml#a"/>` +
		`<navPoint><navLabel><text>Deeper</text></navLabel><content src="text/two%20of%20them.xhtml#b"/></navPoint></navPoint></navMap></ncx>`
)

// Pages are in the order of the spine, as Markdown. A page without a heading gets its name from either form of a table
// of contents.
func TestEPUB(t *testing.T) {
	const two, one = "\n\nFood\n\nThey eat in the morning.\n", "\n## Water\n\nIt is changed\non Mondays.\n\nA note.\n"
	const nav, ncx = `<item id="nav" href="nav.xhtml" properties="scripted nav" media-type="application/xhtml+xml"/>`, `<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>`
	pages := []string{"OEBPS/text/one.xhtml", pageOne, "OEBPS/text/two of them.xhtml", pageTwo}
	for name, c := range map[string]struct {
		raw  []byte
		want string
	}{
		"EPUB 3":           {epub(t, bookMeta+"<manifest>"+nav+bookPages+"</manifest>"+bookSpine, append(pages, "OEBPS/nav.xhtml", navPage)...), "# What they eat" + two + one},
		"EPUB 2":           {epub(t, bookMeta+"<manifest>"+ncx+bookPages+"</manifest>"+bookSpine, append(pages, "OEBPS/toc.ncx", navNCX)...), "# What they eat" + two + one},
		"no contents":      {epub(t, bookMeta+"<manifest>"+bookPages+"</manifest>"+bookSpine, pages...), strings.TrimLeft(two, "\n") + one},
		"broken contents":  {epub(t, bookMeta+"<manifest>"+nav+bookPages+"</manifest>"+bookSpine, append(pages, "OEBPS/nav.xhtml", "<nav>&nbsp;")...), strings.TrimLeft(two, "\n") + one},
		"obfuscated fonts": {epub(t, bookMeta+"<manifest>"+bookPages+"</manifest>"+bookSpine, append(pages, "META-INF/encryption.xml", encrypted(obfuscations...))...), strings.TrimLeft(two, "\n") + one},
	} {
		text, title, err := EPUB(c.raw, most, later(), Unread{})
		if err != nil || title != "The keeping of fish" {
			t.Errorf("%s: %q, %v", name, title, err)
		}
		if diff := cmp.Diff(c.want, text); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestEPUBUnread: what pages hold and nobody reads is counted, through the process that reads them.
func TestEPUBUnread(t *testing.T) {
	page := strings.Replace(pageTwo, "</body>", `<math><mi>x</mi></math><iframe src="a"></iframe></body>`, 1)
	raw := epub(t, bookMeta+"<manifest>"+bookPages+"</manifest>"+bookSpine, "OEBPS/text/one.xhtml", pageOne, "OEBPS/text/two of them.xhtml", page)
	r, err := readApart(t.Context(), "EPUB", raw, most, maxTime)
	if diff := cmp.Diff(Unread{"formula": 1, "embedded page": 1}, r.Unread); err != nil || diff != "" {
		t.Errorf("%v, %s", err, diff)
	}
}

// encrypted returns META-INF/encryption.xml with algorithms.
func encrypted(algorithms ...string) string {
	var b strings.Builder
	for _, a := range algorithms {
		b.WriteString(`<EncryptedData><EncryptionMethod Algorithm="` + a + `"/><CipherData><CipherReference URI="x"/></CipherData></EncryptedData>`)
	}
	return "<encryption>" + b.String() + "</encryption>"
}

func TestEPUBsThatAreRefused(t *testing.T) {
	opf := bookMeta + "<manifest>" + bookPages + "</manifest>" + bookSpine
	whole := epub(t, opf, "OEBPS/text/one.xhtml", pageOne, "OEBPS/text/two of them.xhtml", pageTwo)
	for name, c := range map[string]struct {
		raw  []byte
		want string
	}{
		"encrypted":         {epub(t, opf, "META-INF/encryption.xml", encrypted(obfuscations[0], "http://www.w3.org/2001/04/xmlenc#aes128-cbc")), "encrypted (DRM)"},
		"a page is missing": {epub(t, opf, "OEBPS/text/one.xhtml", pageOne), "OEBPS/text/two of them.xhtml is missing"},
		"a binary page":     {epub(t, opf, "OEBPS/text/one.xhtml", pageOne, "OEBPS/text/two of them.xhtml", "\x00\x01"), "cannot be read"},
		"not a book":        {zipped(t, "mimetype", "application/epub+zip"), "not an e-book"},
		"no XML":            {epub(t, "<"), "cannot be read"},
		"cut off":           {whole[:len(whole)/2], "cannot be read"},
		"an XML bomb":       {zipped(t, "META-INF/container.xml", `<!DOCTYPE d [<!ENTITY a "ha">]><a>&a;</a>`), "invalid character entity"},
		"pages in pages":    {epub(t, opf, "OEBPS/text/one.xhtml", "", "OEBPS/text/two of them.xhtml", strings.Repeat("<div>", 10_000)), "cannot be read"},
		"a page of 3 MB":    {officeSwollen(t, "OEBPS/text/two of them.xhtml", "<p>", "word ", 3<<20, "META-INF/container.xml", `<container><rootfile full-path="OEBPS/book.opf"/></container>`, "OEBPS/book.opf", "<package>"+opf+"</package>"), "too long"},
		"a page again":      {epub(t, "<manifest>"+bookPages+"</manifest><spine>"+strings.Repeat(`<itemref idref="one"/>`, 90_000)+"</spine>", "OEBPS/text/one.xhtml", strings.Repeat(pageOne, 2)), "too long"},
	} {
		r, err := readApart(t.Context(), "EPUB", c.raw, 2<<20, maxTime)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "exclude") {
			t.Errorf("%s: %d bytes, %v", name, len(r.Text), err)
		}
	}
}

func FuzzEPUB(f *testing.F) {
	fuzz(f, EPUB, func(t testing.TB, xml string) []byte {
		opf := `<manifest><item id="one" href="one.xhtml" media-type="text/html"/><item href="toc.xml" properties="nav"/></manifest><spine><itemref idref="one"/></spine>` + xml
		return epub(t, opf, "OEBPS/one.xhtml", xml, "OEBPS/toc.xml", xml, "META-INF/encryption.xml", xml)
	}, bookMeta+bookPages+bookSpine, pageOne, navPage, navNCX)
}
