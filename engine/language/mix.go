package language

import (
	"cmp"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/abadojack/whatlanggo"
)

const (
	sampled = 1000 // texts that are looked at, drawn at random
	rare    = 0.05 // the share below which a language may well be an error
)

// Share is a language with its share of the texts.
type Share struct {
	Language string  `json:"language"` // ISO 639-1
	Share    float64 `json:"share"`    // of the texts whose language is known, 0 to 1
}

// Mix returns the languages of texts, the commonest first; none where it is not known of
// any. Of many texts it looks at 1,000, the same ones each time. A first pass weighs each
// text's language by how sure it is; the second tells those languages apart that have 5 %
// of that, which is easier, so that short texts count, too. Others are left out. Where each
// text is too short to tell, the language is that of all of them together.
func Mix(texts iter.Seq[string]) []Share {
	sample := draw(texts)
	among := spoken
	counts := count(sample, among, func(confidence float64) float64 { return confidence })
	if len(counts) > 0 {
		among = whatlanggo.Options{Whitelist: map[whatlanggo.Lang]bool{}}
		for l := range counts {
			among.Whitelist[l] = true
		}
		counts = count(sample, among, func(confidence float64) float64 {
			if confidence < reliable {
				return 0
			}
			return 1
		})
	} else if l := Of(strings.Join(sample, "\n")); l != "" {
		return []Share{{l, 1}}
	}
	var all []Share
	for l, share := range counts {
		all = append(all, Share{l.Iso6391(), share})
	}
	slices.SortFunc(all, func(a, b Share) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Language, b.Language))
	})
	return all
}

// count returns what share of the texts' weights each language has; rare ones are left out.
func count(texts []string, among whatlanggo.Options, weight func(confidence float64) float64) map[whatlanggo.Lang]float64 {
	counts, total := map[whatlanggo.Lang]float64{}, 0.
	for _, text := range texts {
		if l, confidence := detect(text, among); confidence > 0 {
			counts[l] += weight(confidence)
			total += weight(confidence)
		}
	}
	kept := 0.
	for l, n := range counts {
		if n < rare*total || n == 0 {
			delete(counts, l)
		} else {
			kept += n
		}
	}
	for l := range counts {
		counts[l] /= kept
	}
	return counts
}

// draw keeps some texts of any number, each as likely as another (Vitter's algorithm R,
// "Random sampling with a reservoir", 1985).
func draw(texts iter.Seq[string]) []string {
	var kept []string
	random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // it is to be the same each time
	seen := 0
	for text := range texts {
		seen++
		if len(kept) < sampled {
			kept = append(kept, strings.Clone(cut(text)))
		} else if at := random.IntN(seen); at < sampled {
			kept[at] = strings.Clone(cut(text))
		}
	}
	return kept
}
