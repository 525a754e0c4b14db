package analyze

import (
	"strings"
	"testing"
)

// TestLanguages wants what people write of one thing to meet, frequent words to go
// and words that deny to stay.
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
		a, err := Named(language)
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
