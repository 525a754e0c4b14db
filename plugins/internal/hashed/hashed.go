// Package hashed finds the features of texts that the hashing embedder and the linear voter
// share: words, word bigrams and character n-grams, as hashes. Where a hash falls, and
// how much a feature counts there, is for them to say.
package hashed

import (
	"slices"

	"github.com/racflow/racflow/sdk/analyze"
)

// Character n-grams have 3 to 5 characters, the word's borders among them.
const (
	shortest = 3
	longest  = 5
	border   = 0 // stands before and after a word; no word holds it
)

// The weights of features by their kind.
const (
	wordWeight = 1
	partWeight = 0.5 // bigrams and n-grams
)

// The seeds give a word and an equal n-gram different hashes: FNV-1a's offset basis with
// the kind mixed in.
const (
	basis      = 14695981039346656037
	prime      = 1099511628211
	seedWord   = basis ^ 'w'
	seedBigram = basis ^ 'b'
	seedChars  = basis ^ 'c'
)

// Extractor finds the features of texts. It reuses its memory, so it serves one
// goroutine.
type Extractor struct {
	Analyzer analyze.Analyzer

	list  []string
	runes []rune   // of one word, with its borders
	words []uint64 // hashes of words, one for each time they occur
	parts []uint64 // the same of bigrams and n-grams
}

// Each calls f with every feature of a text once, in a fixed order: its hash, the weight
// of its kind, and how often it occurs.
func (x *Extractor) Each(text string, f func(hash uint64, weight float32, times int)) {
	x.list = x.Analyzer.Append(x.list[:0], text)
	x.words, x.parts = x.words[:0], x.parts[:0]
	var last uint64
	for i, word := range x.list {
		h := uint64(seedWord)
		x.runes = append(x.runes[:0], border)
		for _, r := range word {
			h = step(h, uint64(r))
			x.runes = append(x.runes, r)
		}
		x.runes = append(x.runes, border)
		x.words = append(x.words, mix(h))
		if i > 0 {
			x.parts = append(x.parts, mix(step(step(seedBigram, last), h)))
		}
		last = h
		x.addNGrams()
	}
	eachRun(x.words, func(h uint64, times int) { f(h, wordWeight, times) })
	eachRun(x.parts, func(h uint64, times int) { f(h, partWeight, times) })
}

// addNGrams adds the n-grams of the word in runes to parts.
func (x *Extractor) addNGrams() {
	for i := range x.runes {
		h := uint64(seedChars)
		for j := i; j < min(i+longest, len(x.runes)); j++ {
			h = step(h, uint64(x.runes[j]))
			if j-i+1 >= shortest {
				x.parts = append(x.parts, mix(h))
			}
		}
	}
}

// eachRun sorts the hashes and calls f with each of them and its count.
func eachRun(hashes []uint64, f func(hash uint64, times int)) {
	slices.Sort(hashes)
	for i := 0; i < len(hashes); {
		j := i + 1
		for j < len(hashes) && hashes[j] == hashes[i] {
			j++
		}
		f(hashes[i], j-i)
		i = j
	}
}

// step adds a character to a hash as FNV-1a (Fowler, Noll and Vo) adds a byte.
func step(h, c uint64) uint64 { return (h ^ c) * prime }

// mix spreads a hash over all its bits (the finalizer of MurmurHash3), since
// dimension, sign and bucket are taken from different ones.
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
