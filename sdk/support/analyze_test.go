package support

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

func TestAppend(t *testing.T) {
	tests := []struct {
		name, text     string
		standard, code string // words, separated by spaces
	}{
		{"empty", "", "", ""},
		{"nothing but separators", " -- _ ... __ ", "", ""},
		{"sentence", "What's the Re-open fee, 3.50€?", "what s the re open fee 3 50", "what s the re open fee 3 50"},
		{"camel case", "camelCase", "camelcase", "camelcase camel case"},
		{"capitals", "getHTTPServer ID", "gethttpserver id", "gethttpserver get http server id"},
		{"one capital", "aBTest Ab X", "abtest ab x", "abtest a b test ab x"},
		{"snake case", "max_open__conns", "max open conns", "max_open__conns max open conns"},
		{"edges", "__init__ _x", "init x", "init x"},
		{"digits", "utf8 v2Beta sha256sum", "utf8 v2beta sha256sum", "utf8 utf 8 v2beta v 2 beta sha256sum sha 256 sum"},
		{"path", "src/http_util.go:42", "src http util go 42", "src http_util http util go 42"},
		{"accents", "ÉcoleDuCafé", "écoleducafé", "écoleducafé école du café"},
		{"decomposed", "e\u0301cole", "école", "école"},
		{"compatibility forms", "ﬁne ＡＢ１ x²", "fine ab1 x2", "fine ab1 ab 1 x2 x 2"},
		{"marks", "हिन्दी", "हिन्दी", "हिन्दी"},
		{"marks alone", "\u0301 \u0301a", "a", "a"},
		{"Chinese", "北京city2", "北 京 city2", "北 京 city2 city 2"},
		{"Hiragana with Katakana", "これはテスト", "こ れ は テスト", "こ れ は テスト"},
		{"not UTF-8", "a\xffb\xc3", "a b", "a b"},
		{"soft hyphens", "Haft\u00ADpflicht\u00ADver\u00ADsicherung x\u00ADTen", "haftpflichtversicherung xten", "haftpflichtversicherung xten x ten"},
		{"no width", "con\u200Bfig\u200Bura\u2060tion \uFEFFtorque\uFEFF a\u200Db", "configuration torque ab", "configuration torque ab"},
		{"conjuncts", "ക്\u200Dഷ क्\u200Cष", "ക്ഷ क्ष", "ക്ഷ क्ष"},
		{"Persian", "می\u200Cتوانید", "می توانید", "می توانید"},
		{"Thai with spaces without width", "การ\u200Bรับ", "การ รับ", "การ รับ"},
		{"final sigma", "ΟΔΟΣ οδός δρόμος", "οδοσ οδόσ δρόμοσ", "οδοσ οδόσ δρόμοσ"},
		{"vocalised Arabic", "مُدَّةُ الضَّمـــانِ", "مدة الضمان", "مدة الضمان"},
		{"pointed Hebrew", "שָׁלוֹם", "שלום", "שלום"},
		{"nothing but unseen", "\u00AD \u200B\uFEFF", "", ""},
		{"greek", "ΑΛΦΑ βήταΓ", "αλφα βήταγ", "αλφα βήταγ βήτα γ"},
	}
	for _, tt := range tests {
		for name, want := range map[string]string{"standard": tt.standard, "code": tt.code} {
			t.Run(name+"/"+tt.name, func(t *testing.T) {
				a, err := NamedAnalyzer(name)
				if err != nil {
					t.Fatal(err)
				}
				if got := strings.Join(a.Append(nil, tt.text), " "); got != want {
					t.Errorf("%q: %q, want %q", tt.text, got, want)
				}
			})
		}
	}
}

func TestNamed(t *testing.T) {
	const all = "code, danish, dutch, english, finnish, french, german, hungarian, italian, ngram, norwegian, portuguese, russian, spanish, standard, swedish"
	if _, err := NamedAnalyzer("latin"); err == nil || !strings.HasSuffix(err.Error(), "use one of "+all) {
		t.Errorf("unknown name: %v", err)
	}
	for _, name := range AnalyzerNames() {
		if a, err := NamedAnalyzer(name); err != nil || a.String() != name {
			t.Errorf("%s: %v, %v", name, a, err)
		}
	}
}

func FuzzAppend(f *testing.F) {
	f.Add("getHTTPServer_v2 北京 e\u0301 \xff")
	f.Fuzz(func(t *testing.T, text string) {
		for _, name := range AnalyzerNames() {
			a, _ := NamedAnalyzer(name)
			words := a.Append([]string{"before"}, text)
			if words[0] != "before" {
				t.Fatal("overwrites what was there")
			}
			for _, w := range words[1:] {
				if w == "" || !utf8.ValidString(w) || strings.ContainsAny(w, " -.\n") {
					t.Fatalf("%s: word %q", name, w)
				}
			}
			if again := a.Append(nil, norm.NFKC.String(text)); !slices.Equal(again, words[1:]) {
				t.Fatalf("%s: depends on the Unicode form of %q", name, text)
			}
		}
	})
}

// TestStored: a collection with a stored analyzer name keeps the analyzer that made it.
func TestStored(t *testing.T) {
	for _, name := range AnalyzerNames() {
		for kept, want := range map[string]string{name: "haft pflicht", StoredName(name): "haftpflicht", StoredName(StoredName(name)): "haftpflicht"} {
			a, err := StoredAnalyzer(kept)
			words := a.Append(nil, "haft\u00ADpflicht")
			if err != nil || a.String() != name || len(words) != len(strings.Fields(want)) {
				t.Errorf("%s: %s, %q, %v", kept, a, words, err)
			}
		}
	}
	if _, err := StoredAnalyzer("english/3"); err == nil {
		t.Error("a version of later was taken")
	}
	if StoredName("") != "" {
		t.Error("no analyzer has a name")
	}
}
