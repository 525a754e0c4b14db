package cli

import (
	"maps"
	"slices"
	"sync"

	"github.com/tiktoken-go/tokenizer"
)

// sentences are in languages whose letters take one to four bytes, and whose tokens have between one
// and ten bytes.
var sentences = map[string]string{
	"english":  "I still have not received the card that I ordered two weeks ago, could you tell me how to change the address on my account please, my transfer has been pending since Monday morning",
	"german":   "Ich habe die Karte, die ich vor zwei Wochen bestellt habe, immer noch nicht erhalten, könnten Sie mir bitte sagen, wie ich die Adresse meines Kontos ändere, meine Überweisung steht seit Montagmorgen aus",
	"finnish":  "En ole vieläkään saanut korttia, jonka tilasin kaksi viikkoa sitten, voisitteko kertoa, miten muutan tilini osoitteen, tilisiirtoni on odottanut maanantaiaamusta lähtien",
	"turkish":  "İki hafta önce sipariş ettiğim kart hâlâ elime ulaşmadı, hesabımdaki adresi nasıl değiştireceğimi söyler misiniz, havalem pazartesi sabahından beri beklemede",
	"russian":  "Я до сих пор не получил карту, которую заказал две недели назад, не могли бы вы сказать, как изменить адрес в моём счёте, мой перевод ожидает с утра понедельника",
	"greek":    "Δεν έχω λάβει ακόμη την κάρτα που παρήγγειλα πριν από δύο εβδομάδες, μπορείτε να μου πείτε πώς αλλάζω τη διεύθυνση στον λογαριασμό μου",
	"arabic":   "لم أستلم بعد البطاقة التي طلبتها قبل أسبوعين هل يمكنكم إخباري كيف أغير العنوان في حسابي حوالتي معلقة منذ صباح يوم الاثنين",
	"hindi":    "मुझे दो सप्ताह पहले मंगाया गया कार्ड अभी तक नहीं मिला है कृपया बताएं कि मैं अपने खाते का पता कैसे बदल सकता हूँ मेरा भुगतान सोमवार की सुबह से लंबित है",
	"tamil":    "இரண்டு வாரங்களுக்கு முன்பு நான் ஆர்டர் செய்த அட்டை இன்னும் வரவில்லை எனது கணக்கில் முகவரியை எப்படி மாற்றுவது என்று சொல்ல முடியுமா",
	"georgian": "ჯერ კიდევ არ მიმიღია ბარათი რომელიც ორი კვირის წინ შევუკვეთე შეგიძლიათ მითხრათ როგორ შევცვალო მისამართი ჩემს ანგარიშზე",
	"amharic":  "ከሁለት ሳምንት በፊት ያዘዝኩት ካርድ እስካሁን አልደረሰኝም በሂሳቤ ላይ ያለውን አድራሻ እንዴት እንደምቀይር ሊነግሩኝ ይችላሉ",
	"korean":   "2주 전에 주문한 카드를 아직 받지 못했습니다 제 계정의 주소를 변경하는 방법을 알려 주시겠어요 월요일 아침부터 이체가 보류 중입니다",
	"chinese":  "我 两周 前 订购 的 卡片 至今 还 没有 收到 请问 如何 更改 我 账户 上 的 地址 我 的 转账 从 星期一 早上 开始 一直 处于 待处理 状态",
	"japanese": "二週間前に 注文した カードが まだ 届いていません アカウントの 住所を 変更する 方法を 教えていただけますか 月曜日の 朝から 振込が 保留に なっています",
	"digits":   "4242 8811 2026-11-22 16:04:59 +49 170 1234567 DE89370400440532013000 1,250.00 993.5 17 88 2031 code invoice 7781-A",
}

// languages are the names of the languages, sorted.
var languages = slices.Sorted(maps.Keys(sentences))

// codec is a tokenizer that caches its counts.
type codec struct {
	tokenizer.Codec
	mu     sync.Mutex
	counts map[string]int
}

// count counts the tokens of a text.
func (c *codec) count(text string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := c.counts[text]
	if !ok {
		ids, _, err := c.Encode(text)
		if err != nil {
			panic(err) // every text can be encoded
		}
		n = len(ids)
		c.counts[text] = n
	}
	return n
}

// codecs are real tokenizers, of 200,000, 100,000 and 50,000 tokens.
var codecs = sync.OnceValue(func() (all []*codec) {
	for _, name := range []tokenizer.Encoding{tokenizer.O200kBase, tokenizer.Cl100kBase, tokenizer.R50kBase} {
		c, err := tokenizer.Get(name)
		if err != nil {
			panic(err) // they are built in
		}
		all = append(all, &codec{Codec: c, counts: map[string]int{}})
	}
	return all
})
