package doctor

import (
	"cmp"
	"context"
	"slices"
	"unicode/utf8"
)

// This file finds texts that are nearly the same, such as copies with a word changed, in time
// proportional to their number.
//
// Each text is a set of runs of 4 characters; the similarity of two texts is the Jaccard index of
// their sets, estimated by 50 minimal hashes each (Broder, "On the resemblance and containment of
// documents", 1997). Only texts that share all five hashes of one of ten bands are compared
// (locality-sensitive hashing: Leskovec, Rajaraman and Ullman, "Mining of Massive Datasets",
// chapter 3): this finds 98 of 100 pairs with an index of 0.8. Only the first 4,096 bytes of a text
// count.
//
// The comparison ignores meaning: it does not find paraphrases.

const (
	bands    = 10
	perBand  = 5
	width    = 4    // characters in a run
	longest  = 4096 // bytes of a text that count
	followed = 32   // how many texts with the same hash of a band each text is compared with
)

// nearFrom is the least Jaccard index of texts that are nearly the same.
const nearFrom = .8

// NearPair holds the positions of two texts that are nearly the same, the smaller one first.
type NearPair struct {
	A, B  int
	Index float64 // Jaccard index, from 0 to 1
}

// NearPairs returns the pairs of nearly equal texts for which wanted returns true, nearest first.
// For hundreds of texts that are all alike, it returns only some pairs.
func NearPairs(ctx context.Context, texts []string, wanted func(a, b int) bool) ([]NearPair, error) {
	signatures := make([][bands]uint64, len(texts))
	for i, text := range texts {
		if i%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		signatures[i] = sign(shingles(text))
	}
	seen := map[[2]int]bool{}
	var found []NearPair
	order := make([]int, len(texts))
	for band := range bands {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(a, b int) int {
			return cmp.Or(cmp.Compare(signatures[a][band], signatures[b][band]), cmp.Compare(a, b))
		})
		for n, a := range order {
			for _, b := range order[n+1 : min(n+1+followed, len(order))] {
				if signatures[a][band] != signatures[b][band] {
					break
				}
				pair := [2]int{a, b}
				if signatures[a][band] == 0 || seen[pair] || !wanted(a, b) {
					continue
				}
				seen[pair] = true
				if index := jaccard(shingles(texts[a]), shingles(texts[b])); index >= nearFrom {
					found = append(found, NearPair{a, b, index})
				}
			}
		}
	}
	slices.SortFunc(found, func(a, b NearPair) int {
		return cmp.Or(cmp.Compare(b.Index, a.Index), cmp.Compare(a.A, b.A), cmp.Compare(a.B, b.B))
	})
	return found, nil
}

// shingles returns the hashes of a text's runs of characters, sorted, without duplicates; for a
// shorter text, the hash of the whole.
func shingles(text string) []uint64 {
	if len(text) > longest {
		text = text[:longest]
	}
	all := make([]uint64, 0, len(text))
	for start := 0; start < len(text); {
		end, n := start, 0
		for ; n < width && end < len(text); n++ {
			_, size := utf8.DecodeRuneInString(text[end:])
			end += size
		}
		if n == width || start == 0 {
			all = append(all, hash(text[start:end]))
		}
		_, size := utf8.DecodeRuneInString(text[start:])
		start += size
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// hash is FNV-1a, with its bits spread.
func hash(text string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	return spread(h)
}

func spread(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// sign returns a hash for each band; 0 for an empty set.
func sign(set []uint64) (signature [bands]uint64) {
	for band := range bands {
		h := uint64(0)
		for i := range perBand {
			least, seed := ^uint64(0), spread(uint64(band*perBand+i+1))
			for _, s := range set {
				least = min(least, (s^seed)*0x9e3779b97f4a7c15)
			}
			h = spread(h ^ least)
		}
		if len(set) > 0 {
			signature[band] = h | 1
		}
	}
	return signature
}

// jaccard returns the Jaccard index of two sorted sets.
func jaccard(a, b []uint64) float64 {
	both := 0
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			both++
			i++
			j++
		case a[i] < b[j]:
			i++
		default:
			j++
		}
	}
	return float64(both) / float64(max(len(a)+len(b)-both, 1))
}
