package source

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	for text, want := range map[string]string{
		"please tell me when the parcel that I ordered last week will arrive":                "en",
		"bitte sagen Sie mir, wann das Paket ankommt, das ich letzte Woche bestellt habe":    "de",
		"ma carte bancaire a été volée hier soir, et je voudrais en commander une nouvelle":  "fr",
		"quisiera saber cuándo llegará el paquete que pedí la semana pasada, muchas gracias": "es",
		"vorrei sapere quando arriverà il pacco che ho ordinato la settimana scorsa, grazie": "it",
		"скажите, пожалуйста, когда придёт посылка, которую я заказал на прошлой неделе":     "", // or Bulgarian
		"я потерял свою карту вчера вечером и хочу заказать новую, что мне нужно сделать":    "ru",
		"我的包裹什么时候到":                  "zh",
		"先週注文した荷物はいつ届きますか":           "ja",
		"제 소포는 언제 도착하나요":             "ko",
		"Πότε θα φτάσει το δέμα μου": "el",

		"":                               "",
		"12 34 56":                       "",
		"ok":                             "",
		"card lost":                      "",
		"wo ist mein paket":              "", // 14 letters
		"zxqv wkjp qqqz xvvw kkzq pwxxq": "",
	} {
		if got := Language(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	long := strings.Repeat("the parcel that I ordered last week has not arrived yet, and nobody knows why. ", 100_000)
	if got := Language(long); got != "en" {
		t.Errorf("a long text is %q", got)
	}
	if got := cut(strings.Repeat("ä", longest)[1:]); len(got) >= longest || strings.ToValidUTF8(got[1:], "") != got[1:] {
		t.Errorf("%d bytes are left, or half a character", len(got))
	}
}

func TestMix(t *testing.T) {
	english := []string{"where is the parcel that I ordered last week", "I have lost my card and need a new one", "please cancel my subscription at once", "how much do I have to pay for the delivery"}
	german := []string{"wo ist das Paket, das ich letzte Woche bestellt habe", "ich habe meine Karte verloren und brauche eine neue", "bitte kündigen Sie sofort meinen Vertrag", "wie viel muss ich für die Lieferung bezahlen"}
	some := func(n, english1in int) (all []string) {
		for i := range n {
			from := german
			if i%english1in == 0 {
				from = english
			}
			all = append(all, fmt.Sprint(i, " ", from[i/7%len(from)]))
		}
		return all
	}
	for _, c := range []struct {
		name  string
		texts []string
		want  []LanguageShare
	}{
		{"none", nil, nil},
		{"nothing to tell by", []string{"12", "ok", ""}, nil},
		{"one language", some(100, 1), []LanguageShare{{"en", 1}}},
		{"one in four", some(100, 4), []LanguageShare{{"de", .75}, {"en", .25}}},
		{"as rare as errors", some(100, 50), []LanguageShare{{"de", 1}}},
		{"each too short", []string{"where is it", "track order", "the parcel", "not here yet", "what about", "that one", "this is the one"}, []LanguageShare{{"en", 1}}},
		{"more than are looked at", some(20_000, 4), []LanguageShare{{"de", .75}, {"en", .25}}},
	} {
		got := Languages(slices.Values(c.texts))
		near := func(a, b LanguageShare) bool { return a.Language == b.Language && math.Abs(a.Share-b.Share) < .04 }
		if !slices.EqualFunc(got, c.want, near) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if a, b := Languages(slices.Values(some(9000, 3))), Languages(slices.Values(some(9000, 3))); !slices.Equal(a, b) {
		t.Errorf("the same texts: %v, then %v", a, b)
	}
}
