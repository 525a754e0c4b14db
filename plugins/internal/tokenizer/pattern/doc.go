// Package pattern finds what the patterns of a tokenizer.json match: strings, and regular
// expressions as Oniguruma reads them, in linear time.
//
// An expression is translated for package regexp: classes such as \s become those of
// Unicode. Of lookaheads, which that package lacks, the one that GPT-2's expression and
// its descendants end in is known; the most used of these have scanners of their own.
// Every other expression that Go would read in another way, or not at all, is refused.
package pattern
