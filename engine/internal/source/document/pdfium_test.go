package document

import (
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

const helvetica = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"

// stream returns an object with a stream.
func stream(declared, content string) string {
	return fmt.Sprintf("<</Length %d%s>>\nstream\n%s\nendstream", len(content), declared, content)
}

// onePage returns a PDF with one page. Its content is the fourth object, and further objects follow
// from the fifth on.
func onePage(resources, content string, more ...string) string {
	return pdfObjects("", append([]string{"<</Type/Catalog/Pages 2 0 R>>",
		"<</Type/Pages/Kids[<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<<" + resources + ">>>>]/Count 1>>",
		"<<>>", stream("", content)}, more...)...)
}

// Text may be in forms, in forms of forms, and in moved forms.
func TestPDFForms(t *testing.T) {
	form := func(declared, content string) string {
		return stream("/Type/XObject/Subtype/Form/BBox[0 0 612 792]"+declared, content)
	}
	const words = "BT /F1 12 Tf 72 700 Td (seven years) Tj ET"
	for name, c := range map[string]struct{ pdf, want string }{
		"a form":               {onePage("/Font<</F1 5 0 R>>/XObject<</Fm 6 0 R>>", "BT /F1 12 Tf 72 720 Td (Terms) Tj ET q /Fm Do Q", helvetica, form("/Resources<</Font<</F1 5 0 R>>>>", words)), "Terms\nseven years"},
		"a form in a form":     {onePage("/XObject<</A 6 0 R>>", "/A Do", helvetica, form("/Resources<</XObject<</B 7 0 R>>>>", "/B Do"), form("/Resources<</Font<</F1 5 0 R>>>>", words)), "seven years"},
		"the page's fonts":     {onePage("/Font<</F1 5 0 R>>/XObject<</Fm 6 0 R>>", "/Fm Do", helvetica, form("", words)), "seven years"},
		"a form that is moved": {onePage("/Font<</F1 5 0 R>>/XObject<</Fm 6 0 R>>", "BT /F1 12 Tf 72 700 Td (for) Tj ET q 1 0 0 1 30 0 cm /Fm Do Q", helvetica, form("/Resources<</Font<</F1 5 0 R>>>>/Matrix[1 0 0 1 -5 0]", words)), "for seven years"},
		"a form twice":         {onePage("/Font<</F1 5 0 R>>/XObject<</Fm 6 0 R>>", "/Fm Do q 1 0 0 1 0 -14 cm /Fm Do Q", helvetica, form("", words)), "seven years\nseven years"},
	} {
		text, _, err := inProcess([]byte(c.pdf))
		if err != nil || text != c.want {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}

// Codes of composite fonts without their own table are in one of Adobe's tables.
func TestPDFPredefinedCMaps(t *testing.T) {
	for name, c := range map[string]struct {
		order, text string
		codes       encoding.Encoding
	}{
		"GBK-EUC-H":     {"GB1", "压缩机保修七年，索赔需要发票。", simplifiedchinese.GBK},
		"GBKp-EUC-H":    {"GB1", "保修期从购买之日起计算。", simplifiedchinese.GBK},
		"UniGB-UCS2-H":  {"GB1", "压缩机保修七年。", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)},
		"90ms-RKSJ-H":   {"Japan1", "保証期間は七年です。", japanese.ShiftJIS},
		"EUC-H":         {"Japan1", "保証書が必要です。", japanese.EUCJP},
		"UniJIS-UCS2-H": {"Japan1", "圧縮機の保証。", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)},
		"ETen-B5-H":     {"CNS1", "壓縮機保固七年，需要發票。", traditionalchinese.Big5},
		"KSCms-UHC-H":   {"Korea1", "압축기는칠년동안보증됩니다", korean.EUCKR},
	} {
		codes := must.Get(c.codes.NewEncoder().String(c.text))(t)
		raw := onePage("/Font<</F1 5 0 R>>", fmt.Sprintf("BT /F1 12 Tf 72 720 Td <%s> Tj ET", hex.EncodeToString([]byte(codes))),
			"<</Type/Font/Subtype/Type0/BaseFont/Some-Light/Encoding/"+name+"/DescendantFonts[6 0 R]>>",
			"<</Type/Font/Subtype/CIDFontType0/BaseFont/Some-Light/CIDSystemInfo<</Registry(Adobe)/Ordering("+c.order+")/Supplement 4>>/DW 1000/FontDescriptor 7 0 R>>",
			"<</Type/FontDescriptor/FontName/Some-Light/Flags 6/FontBBox[-25 -254 1000 880]/ItalicAngle 0/Ascent 880/Descent -120/CapHeight 880/StemV 93>>")
		text, _, err := inProcess([]byte(raw))
		if err != nil || text != c.text {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}

// A word that a hyphen breaks is joined again; a hyphenated word keeps its hyphen.
func TestPDFHyphens(t *testing.T) {
	for name, c := range map[string]struct{ lines, want []string }{
		"broken words":   {[]string{"checks the thermo-", "stat until the pres-", "sure is stable"}, []string{"checks the thermostat", "until the pressure", "is stable"}},
		"German":         {[]string{"die Haftpflicht-", "versicherung zahlt"}, []string{"die Haftpflichtversicherung", "zahlt"}},
		"known":          {[]string{"in form, to inform: it in-", "forms, or may in-", "form you"}, []string{"in form, to inform: it informs,", "or may inform", "you"}},
		"a hyphen":       {[]string{"a high-level plan, and a high-", "level view"}, []string{"a high-level plan, and a high-level", "view"}},
		"two words":      {[]string{"oil is free of acid, so it is oil-", "free, too"}, []string{"oil is free of acid, so it is oil-free,", "too"}},
		"a name":         {[]string{"said Jean-", "Paul then"}, []string{"said Jean-", "Paul then"}},
		"a number":       {[]string{"pages 10-", "20 of it"}, []string{"pages 10-", "20 of it"}},
		"a dash":         {[]string{"this - or", "that -", "and so on"}, []string{"this - or", "that -", "and so on"}},
		"a mark at last": {[]string{"the radi-", "ator. Then", "it ends"}, []string{"the radiator.", "Then", "it ends"}},
		"twice":          {[]string{"an inter-", "nation-", "al one"}, []string{"an international", "one"}},
		"soft":           {[]string{"a thermo\\255", "stat here"}, []string{"a thermostat", "here"}},
	} {
		content := "BT /F1 12 Tf 14 TL 72 720 Td (" + strings.Join(c.lines, ") Tj T* (") + ") Tj ET"
		text, _, err := inProcess([]byte(onePage("/Font<</F1 5 0 R>>", content, helvetica)))
		if diff := cmp.Diff(c.want, strings.Split(text, "\n")); diff != "" || err != nil {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
}

// Words end where there is space, whatever the file declares.
func TestPDFSpaces(t *testing.T) {
	for name, c := range map[string]struct{ operators, want string }{
		"a narrow space":      {"BT /F1 10 Tf 50 700 Td (any) Tj 19.5 0 Td (other) Tj ET", "any other"},
		"kerned":              {"BT /F1 10 Tf 50 700 Td [(operator,) -150 (the)] TJ ET", "operator, the"},
		"two fonts":           {"BT /F1 10 Tf 50 700 Td (<) Tj /F2 9 Tf 6 0 Td (/DIV) Tj /F1 10 Tf 21.6 0 Td (>, 203) Tj ET", "</DIV>, 203"},
		"spaced":              {"BT /F1 10 Tf 4 Tc 50 700 Td (one two) Tj ET", "one two"},
		"upwards":             {"BT /F1 10 Tf 0 1 -1 0 50 100 Tm (turned text) Tj ET", "turned text"},
		"a row in two pieces": {"BT /F1 10 Tf 50 700 Td (left) Tj 200 0 Td (right) Tj -200 -12 Td (next) Tj ET", "left right\nnext"},
	} {
		raw := onePage("/Font<</F1 5 0 R/F2 6 0 R>>", c.operators, courier, courier)
		if text, _, err := inProcess([]byte(raw)); err != nil || text != c.want {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}

// Unreadable content is reported, by page or for the whole file.
func TestPDFUnread(t *testing.T) {
	const one = "BT /F1 10 Tf 50 700 Td (one) Tj ET"
	const picture = "q 100 0 0 100 50 500 cm BI /W 1 /H 1 /CS /G /BPC 8 ID x EI Q"
	whole := pdfOf(one, one, one)
	unnamed := func(glyphs string) string {
		return onePage("/Font<</F1 5 0 R>>", "BT /F1 12 Tf 72 720 Td <"+glyphs+"> Tj ET",
			"<</Type/Font/Subtype/Type0/BaseFont/Some/Encoding/Identity-H/DescendantFonts[6 0 R]>>",
			"<</Type/Font/Subtype/CIDFontType2/BaseFont/Some/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>/DW 1000/FontDescriptor 7 0 R>>",
			"<</Type/FontDescriptor/FontName/Some/Flags 4/FontBBox[0 0 1000 1000]/ItalicAngle 0/Ascent 880/Descent -120/CapHeight 880/StemV 93>>")
	}
	locked := "/ID[<00><00>]/Encrypt<</Filter/Standard/V 1/R 2/Length 40/P -4/O<" + strings.Repeat("5a", 32) + ">/U<" + strings.Repeat("a5", 32) + ">>>"
	for name, c := range map[string]struct {
		raw    string
		unread Unread
		fault  string
	}{
		"all is read":     {whole, nil, ""},
		"scanned pages":   {pdfOf(append(slices.Repeat([]string{picture}, 12), one)...), Unread{"page of pictures (1, 2, 3, 4, 5, 6, 7, 8)": 12}, ""},
		"a scanned page":  {pdfOf(one, picture, one), Unread{"page of pictures (2)": 1}, ""},
		"a drawn page":    {pdfOf(one, one, strings.Repeat("0 0 10 10 re f\n", 100)), Unread{"page of pictures (3)": 1}, ""},
		"an empty page":   {pdfOf(one, "", "0 0 500 1 re f"), nil, ""},
		"a missing page":  {strings.Replace(whole, "7 0 R ", "99 0 R ", 1), Unread{"page that cannot be read (2)": 1}, ""},
		"no page":         {strings.Replace(pdfOf(one), "/Kids[5 0 R ]", "/Kids[99 0 R ]", 1), nil, "cannot be read"},
		"scanned":         {pdfOf(picture, picture), nil, "holds no text (2 pages of pictures (1, 2))"},
		"unnamed letters": {unnamed("0003001200050009"), nil, "(1 page of letters without names (1))"},
		"some letters":    {unnamed("003b004400550055004400510057005c000300570048005500500056"), Unread{"page of letters without names (1)": 1}, ""},
		"encrypted":       {strings.Replace(whole, "/Info 3 0 R", "/Info 3 0 R"+locked, 1), nil, "encrypted"},
		"another lock":    {strings.Replace(whole, "/Info 3 0 R", "/Info 3 0 R/Encrypt<</Filter/Other>>", 1), nil, "encrypted"},
	} {
		text, unread, err := inProcess([]byte(c.raw))
		if c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) || c.fault == "" && (err != nil || !maps.Equal(unread, c.unread)) {
			t.Errorf("%s: %q, %v, %v", name, text, unread, err)
		}
	}
}

// Native code is read from the cache if it is unchanged. The cache is where only its user may write.
func TestPDFCode(t *testing.T) {
	cache := must.TempDir(t)
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("HOME", cache)
	if kept := must.Get(os.UserCacheDir())(t); !strings.HasPrefix(kept, cache) {
		t.Skip("the cache folder is not named by the environment here:", kept)
	}
	dir := must.Get(codeFolder())(t)
	at := filepath.Join(dir, "some-version", strings.Repeat("a", 64))
	must.Do(t, os.MkdirAll(filepath.Dir(at), 0o700))
	is := func() string {
		code, _ := os.ReadFile(at)
		return string(code)
	}
	for name, c := range map[string]struct{ code, left string }{"as it was": {"code", "code"}, "changed": {"cod3", ""}} {
		must.Do(t, os.WriteFile(at, []byte("code"), 0o600))
		writeDigests(dir)
		must.Do(t, os.WriteFile(at, []byte(c.code), 0o600))
		must.Get(codeFolder())(t)
		if is() != c.left {
			t.Errorf("%s: %q is left", name, is())
		}
	}
	_ = os.Remove(at + digest)
	must.Do(t, os.WriteFile(at, []byte("code"), 0o600))
	must.Get(codeFolder())(t)
	if is() != "" {
		t.Error("code without a digest is left")
	}
	must.Do(t, os.Symlink("/tmp", filepath.Join(dir, "link")))
	if dir, err := codeFolder(); err == nil {
		t.Errorf("%s is taken, with what is not the user's own", dir)
	}
}

// One process reads all files until a file breaks it.
func TestReadingProcess(t *testing.T) {
	dir := open(t, Set{Path: folder(t, map[string]string{"a.pdf": pdfOf("BT /F1 10 Tf 50 700 Td (one) Tj ET")})})
	process := func() int {
		if d, _, err := dir.Read(t.Context(), "a.pdf"); err != nil || d.Text != "one" {
			t.Fatalf("%+v, %v", d, err)
		}
		return idle.Load().Process.Pid
	}
	first := process()
	if again := process(); again != first {
		t.Error("another file has another process")
	}
	folder := idle.Load().folder
	must.Do(t, idle.Load().Process.Kill())
	second := process()
	if second == first {
		t.Error("a dead process has read a file")
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("its folder for temporary files: %v", err)
	}
	folder = idle.Load().folder
	if _, err := readApart(t.Context(), "PDF", []byte(pdfOf("")), 1, 0); err == nil {
		t.Error("a file was read in no time")
	}
	if third := process(); third == second {
		t.Error("the process goes on after its time")
	}
	must.Do(t, dir.Close())
	if idle.Load() != nil {
		t.Error("a process outlives its folder")
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("its folder for temporary files: %v", err)
	}
}
