package support

import (
	"slices"
	"strings"
	"testing"
	"unicode"
)

func ngrams(t *testing.T, text string) []string {
	t.Helper()
	a, err := NamedAnalyzer("ngram")
	if err != nil {
		t.Fatal(err)
	}
	return a.Append(nil, text)
}

func TestNgram(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", ""},
		{"nothing but separators", "。、・！ __ ", ""},
		{"English as standard", "What's the Re-open fee, max_conns 3.50€?", "what s the re open fee max conns 3 50"},
		{"accents, marks and case", "ÉCOLE e\u0301t हिन्दी \u0301 \u0301a", "école ét हिन्दी a"},
		{"Chinese", "我要挂失银行卡。", "我要 要挂 挂失 失银 银行 行卡"},
		{"one character", "猫", "猫"},
		{"one character between others", "a猫b 犬", "a 猫 b 犬"},
		{"two characters", "東京", "東京"},
		{"Chinese beyond the basic plane", "𠮷野家", "𠮷野 野家"},
		{"zero as a character", "二〇二四年", "二〇 〇二 二四 四年"},
		{"Japanese across its scripts", "カードを止めて", "カー ード ドを を止 止め めて"},
		{"iteration and length marks", "人々らーめん", "人々 々ら らー ーめ めん"},
		{"half-width Katakana", "ｶﾞｰﾄﾞ", "ガー ード"},
		{"decomposed Katakana", "カ\u3099ス", "ガス"},
		{"middle dot separates", "データ・ベース", "デー ータ ベー ース"},
		{"mixed", "iPhone15の充電ケーブルUSB-C", "iphone15 の充 充電 電ケ ケー ーブ ブル usb c"},
		{"digits", "2024年5月", "2024 年 5 月"},
		{"Korean", "학교에서 밥을", "학교 교에 에서 밥을"},
		{"decomposed Korean", "학\u1100\u116d", "학교"},
		{"Korean, one syllable", "이 책", "이 책"},
		{"Thai with its marks", "บัตรหาย", "บัต ตร รห หา าย"},
		{"Thai am", "น้ำ", "น\u0e49\u0e4dา"},
		{"Thai digits", "๒๕๖๗", "๒๕๖๗"},
		{"Lao", "ບັດເສຍ", "ບັດ ດເ ເສ ສຍ"},
		{"Khmer", "កាតបាត់", "កាត តបា បាត់"},
		{"Burmese", "ကတ်ပျောက်", "ကတ် တ်ပျော ပျောက်"},
		{"zero width space separates", "บัตร\u200bหาย", "บัต ตร หา าย"},
		{"not UTF-8", "東\xff京", "東 京"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := strings.Join(ngrams(t, tt.text), " "); got != tt.want {
				t.Errorf("%q: %q, want %q", tt.text, got, tt.want)
			}
		})
	}
}

// TestNgramFinds: a question shares most words with the text that answers it; words between spaces do
// not achieve that.
func TestNgramFinds(t *testing.T) {
	for language, c := range map[string]struct {
		query string
		texts []string // the first one is the right one
	}{
		"Japanese": {"カードをなくした", []string{"クレジットカードをなくしたときの手続き", "明日の東京の天気予報", "口座の残高を確認する方法"}},
		"Chinese":  {"银行卡丢了", []string{"我的银行卡丢了怎么办", "明天北京的天气", "如何更改银行账户的密码"}},
		"Thai":     {"บัตรเครดิตหาย", []string{"ต้องทำอย่างไรเมื่อทำบัตรเครดิตหาย", "พยากรณ์อากาศวันพรุ่งนี้", "ตรวจสอบยอดเงินในบัญชี"}},
		"Korean":   {"카드 분실", []string{"신용카드를 분실했을 때 신고하는 방법", "내일 서울의 날씨", "계좌의 잔액을 확인하는 방법"}},
	} {
		t.Run(language, func(t *testing.T) {
			query := ngrams(t, c.query)
			shared := func(text string) (n int) {
				words := ngrams(t, text)
				for _, w := range query {
					if slices.Contains(words, w) {
						n++
					}
				}
				return n
			}
			meant := shared(c.texts[0])
			if 2*meant < len(query) {
				t.Errorf("the text that is meant has %d of the query's %d words", meant, len(query))
			}
			for _, other := range c.texts[1:] {
				if n := shared(other); 2*n >= meant {
					t.Errorf("%s has %d of the query's words, the one that is meant %d", other, n, meant)
				}
			}
		})
	}
}

// FuzzNgram checks pairs of letters against their text.
func FuzzNgram(f *testing.F) {
	for _, text := range []string{"カードを止めて", "บัตรหาย", "iPhone15の充電", "학교에서", "a猫\u0301b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var joined strings.Builder
		letters := 0
		for _, w := range ngrams(t, text) {
			n := 0
			for _, r := range w {
				if unspaced(r) {
					n++
				} else if n > 0 && !unicode.IsMark(r) {
					t.Fatalf("%q: word %q goes on after a letter without spaces", text, w)
				}
			}
			if n > 2 {
				t.Fatalf("%q: word %q has %d letters", text, w, n)
			}
			letters += n
			joined.WriteString(w)
		}
		for _, r := range joined.String() {
			if !unspaced(r) && !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) {
				t.Fatalf("%q: %q is in a word", text, r)
			}
		}
		if alone := strings.ContainsFunc(text, unspaced); alone && letters == 0 {
			t.Fatalf("%q: no word has its letters", text)
		}
	})
}

// TestLanguages: forms of one word match, frequent words are removed, and negations stay.
func TestLanguages(t *testing.T) {
	for language, texts := range map[string][][2]string{
		"german": {
			{"Die Häuser und das Haus", "haus haus"}, {"Kündigungen, kündigen, gekündigt", "kundig kundig gekundigt"},
			{"Rechnung nicht bezahlt", "rechnung nicht bezahlt"}, {"STRASSE Straße", "strass strass"},
		},
		"french": {
			{"Les chevaux et le cheval", "cheval cheval"}, {"l'abonnement, d’abonnements", "abon abon"},
			{"je ne continue pas, continuer", "ne continu pas continu"},
		},
		"spanish": {{"Los pagos, el pago", "pag pag"}, {"cancelar la cancelación", "cancel cancel"}, {"no funciona", "no funcion"}},
		"italian": {{"gli abbonamenti, l'abbonamento", "abbon abbon"}, {"abbandonata, abbandonato", "abbandon abbandon"}, {"non", "non"}},
		"portuguese": {
			{"as contas da conta", "cont cont"}, {"pagamentos e pagamento", "pagament pagament"}, {"não", "nã"},
		},
		"dutch":     {{"De betalingen van een betaling", "betal betal"}, {"niet", "niet"}},
		"swedish":   {{"Betalningar och betalningen", "betalning betalning"}, {"inte", "int"}},
		"danish":    {{"Betalinger og betalingen", "betaling betaling"}, {"ikke", "ikk"}},
		"norwegian": {{"Betalinger og betalingen", "betaling betaling"}, {"ikke", "ikk"}},
		"finnish":   {{"talossa ja talot", "talo talo"}, {"ei", "ei"}},
		"hungarian": {{"A házak és a házban", "ház ház"}, {"nem", "nem"}},
		"russian":   {{"Счета и счетов", "счет счет"}, {"отмена в отмены", "отм отм"}, {"не", "не"}},
	} {
		a, err := NamedAnalyzer(language)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range texts {
			if got := strings.Join(a.Append(nil, text[0]), " "); got != text[1] {
				t.Errorf("%s: %q is %q, want %q", language, text[0], got, text[1])
			}
		}
	}
}

func TestEnglish(t *testing.T) {
	a, err := NamedAnalyzer("english")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"The diseases OF T-cells, and it's not in vivo": "diseas t cell s not vivo",
		"the of and":           "",
		"Zellen être GNB2 a1s": "zellen être gnb2 a1s",
	} {
		if got := strings.Join(a.Append(nil, text), " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// The examples of the paper, each through all steps.
func TestStem(t *testing.T) {
	for _, pair := range strings.Fields(`
		caresses:caress ponies:poni ties:ti caress:caress cats:cat
		feed:feed decreed:decre plastered:plaster bled:bled motoring:motor sing:sing
		conflated:conflat troubled:troubl sized:size hopping:hop tanned:tan falling:fall hissing:hiss fizzed:fizz
		failing:fail filing:file happy:happi sky:sky
		relational:relat conditional:condit rational:ration valenci:valenc hesitanci:hesit digitizer:digit
		conformabli:conform radicalli:radic differentli:differ vileli:vile analogousli:analog vietnamization:vietnam
		predication:predic operator:oper feudalism:feudal decisiveness:decis hopefulness:hope callousness:callous
		formaliti:formal sensitiviti:sensit sensibiliti:sensibl analogi:analog
		triplicate:triplic formative:form formalize:formal electriciti:electr electrical:electr hopeful:hope goodness:good
		revival:reviv allowance:allow inference:infer airliner:airlin gyroscopic:gyroscop adjustable:adjust
		defensible:defens irritant:irrit replacement:replac adjustment:adjust dependent:depend adoption:adopt
		homologou:homolog communism:commun activate:activ angulariti:angular homologous:homolog effective:effect bowdlerize:bowdler
		probate:probat rate:rate cease:ceas controlling:control roll:roll
		generalizations:gener oscillators:oscil eed:eed eeds:eed ies:i sses:ss
		is:is a:a ion:ion being:be gnb2:gnb2 naïve:naïve`) {
		word, want, _ := strings.Cut(pair, ":")
		if got := stem(word); got != want {
			t.Errorf("stem of %s is %s, want %s", word, got, want)
		}
	}
}
