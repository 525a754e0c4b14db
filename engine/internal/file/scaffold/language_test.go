package scaffold

import (
	"strings"
	"testing"
)

func TestLanguageOf(t *testing.T) {
	english := "please tell me when the parcel that I ordered last week will arrive"
	german := "bitte sagen Sie mir, wann das Paket ankommt, das ich letzte Woche bestellt habe"
	for _, c := range []struct {
		name  string
		texts []string
		want  string
	}{
		{"none", nil, ""},
		{"nothing to tell by", []string{"12", "ok", ""}, ""},
		{"English", []string{english}, "en"},
		{"each too short", []string{"where is it", "track order", "the parcel", "not here yet", "what about", "that one", "this is the one"}, "en"},
		{"German", []string{german, "wo ist mein paket"}, "de"},
		{"German for the most part", []string{german, german, "wo ist das Paket, das ich bestellt habe", english, german}, "de"},
		{"French", []string{"ma carte bancaire a été volée hier soir, et je voudrais en commander une nouvelle"}, "fr"},
		{"Russian", []string{"я потерял свою карту вчера вечером и хочу заказать новую, что мне нужно сделать"}, "ru"},
		{"Chinese", []string{"我的包裹什么时候到我的包裹什么时候到我的包裹什么时候到"}, "zh"},
		{"Japanese", []string{"先週注文した荷物はいつ届きますか"}, "ja"},
		{"a letter that is cut", []string{strings.Repeat("ä", longest)[1:], strings.Repeat(german, 20)}, "de"},
		{"long", []string{strings.Repeat(english+". ", 100_000)}, "en"},
	} {
		if got := languageOf(c.texts); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
