package document

import (
	"strings"
	"testing"

	"golang.org/x/text/encoding/htmlindex"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestCharsets reads files in the encoding that a mark or a declaration names, and in an encoding that
// nothing names.
func TestCharsets(t *testing.T) {
	const german, russian, chinese = "Die Rückgabe ist binnen vierzehn Tagen möglich.", "Возврат товара возможен в течение четырнадцати дней.", "压缩机保修七年，索赔需要发票和序列号。"
	for name, c := range map[string]struct{ charset, before, text string }{
		"mark.html":     {"utf-8", "\uFEFF<meta charset=windows-1252><p>", german},
		"meta.html":     {"windows-1252", "<meta charset=windows-1252><p>", german},
		"equiv.html":    {"windows-1251", `<meta http-equiv="Content-Type" content="text/html; charset=windows-1251"><p>`, russian},
		"gbk.htm":       {"gbk", "<meta charset=gb2312><p>", chinese},
		"xml.xhtml":     {"koi8-r", `<?xml version="1.0" encoding='KOI8-R'?><p>`, russian},
		"xml1.xhtml":    {"iso-8859-1", `<?xml version="1.0" encoding="ISO-8859-1"?><p>`, german},
		"unnamed.html":  {"windows-1251", "<p>", russian},
		"wrong.html":    {"windows-1252", "<meta charset=utf-8><p>", german},
		"latin.txt":     {"windows-1252", "", german},
		"cyrillic.md":   {"koi8-r", "", russian},
		"chinese.txt":   {"gbk", "", chinese},
		"declared.txt":  {"utf-8", "<meta charset=gbk>", german},
		"comment.py":    {"windows-1251", "# ", russian},
		"damaged.html":  {"utf-8", "<p>", german + "\xff"},
		"notebook.json": {"utf-8", "", chinese},
	} {
		e, err := htmlindex.Get(c.charset)
		must.Do(t, err)
		raw := c.before + c.text
		if c.charset != "utf-8" {
			raw, err = e.NewEncoder().String(raw)
			must.Do(t, err)
		}
		d, _, err := open(t, Set{Path: folder(t, map[string]string{name: raw})}).Read(t.Context(), name)
		if want := strings.ToValidUTF8(c.text, "\uFFFD"); err != nil || strings.TrimSpace(strings.TrimPrefix(d.Text, c.before)) != want {
			t.Errorf("%s: %q, %v", name, d.Text, err)
		}
	}
}
