package rows

import (
	"strings"
	"testing"

	"golang.org/x/text/encoding/htmlindex"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestGuess guesses encodings of short texts that do not name theirs.
func TestGuess(t *testing.T) {
	for text, encodings := range map[string]string{
		"Возврат товара возможен в течение четырнадцати дней. Для возврата нужен чек.":                                   "windows-1251 koi8-r iso-8859-5",
		"商品可以在购买后十四天内退货。请附上收据和原包装。":                                                                                      "gbk gb18030",
		"商品可以在購買後十四天內退貨。請附上收據和原包裝。":                                                                                      "big5",
		"商品の返品は購入から十四日以内に可能です。レシートを同封してください。":                                                                            "shift_jis euc-jp",
		"상품은 구입 후 십사일 이내에 반품할 수 있습니다. 영수증을 동봉해 주세요.":                                                                     "euc-kr",
		"Η επιστροφή του προϊόντος είναι δυνατή εντός δεκατεσσάρων ημερών από την αγορά.":                                "windows-1253 iso-8859-7",
		"החזרת המוצר אפשרית בתוך ארבעה עשר ימים מיום הקנייה. יש לצרף קבלה.":                                              "windows-1255",
		"يمكن إرجاع المنتج خلال أربعة عشر يوما من تاريخ الشراء. يرجى إرفاق الفاتورة.":                                    "windows-1256",
		"Zwrot towaru jest możliwy w ciągu czternastu dni od zakupu. Należy dołączyć paragon, świadectwo i żółtą kartę.": "windows-1250 iso-8859-2",
		"Ürün iadesi satın alma tarihinden itibaren on dört gün içinde mümkündür. Fişi saklayın.":                        "windows-1254",
		"Die Rückgabe ist binnen vierzehn Tagen möglich. Für die Größe gelten übliche Maße.":                             "windows-1252",
		"Le remboursement est versé dans un délai de quatorze jours après l'arrivée. L’été, c’est fermé":                 "windows-1252",
		"café": "windows-1252", "Größe": "windows-1252", "10 € for a card": "windows-1252", "½ × 3 = 1,5 ± 0,1": "windows-1252",
		"id,text\n1,naïve\n2,résumé\n": "windows-1252", "“quoted” – it’s": "windows-1252", "Señor": "windows-1252",
	} {
		for name := range strings.FieldsSeq(encodings) {
			from, err := htmlindex.Get(name)
			must.Do(t, err)
			raw, err := from.NewEncoder().String(text)
			must.Do(t, err)
			e, _ := Guess([]byte(raw))
			if e == nil {
				t.Errorf("%s in %s is taken for UTF-8", text, name)
				continue
			}
			if got, err := e.NewDecoder().String(raw); err != nil || got != text {
				t.Errorf("%s in %s became %s, %v", text, name, got, err)
			}
		}
	}
	for _, raw := range []string{"", "plain", "é", "é \xff \x81", "tén bytes \xc3", "\xff\xff\xff"} {
		if e, _ := Guess([]byte(raw)); e != nil {
			t.Errorf("%q is no UTF-8 but %v", raw, e)
		}
	}
}
