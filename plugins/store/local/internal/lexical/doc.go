// Package lexical is the lexical leg of a search: the rows of highest BM25, exactly. Words
// that cannot matter are left out (MaxScore); the result is that of scoring every row.
package lexical
