// Package local is a reranker without a model. It orders candidates by a weighted sum of
// their search scores and of features of their texts, each from 0 to 1 among the
// candidates of one item:
//
//   - dense: the cosine, from the lowest to the highest;
//   - lexical: the BM25 score, divided by the highest;
//   - words: the share of the item's words that the text has, weighted by their
//     idf among the candidates and how often they come (BM25's saturation), so that
//     rare words decide;
//   - phrases: the share of its pairs of neighbouring words that stand together
//     there, too, by the same idf;
//   - fields: the share of its words that the context, the terms added to it, or the
//     title, path and headings in the metadata have.
//
// A score that a search leg did not compute counts as 0. The words are those of the
// analyzer code, whichever the store has: identifiers whole and in parts.
//
// The sum is reduced by what a better candidate says already: maximal marginal
// relevance (Carbonell and Goldstein, SIGIR 1998), with the overlap of the sets of words
// (Jaccard) as the similarity, since candidates come without their vectors. Contexts do
// not count there: chunks of one document have similar contexts and different texts.
//
// The weights were found on public data: the training queries of SciFact and the
// public half of the queries about Anthropic's nine codebases, from 150 candidates of
// MiniLM and BM25; TestQuality measures them. They were rounded, since differences of a
// point on so few queries mean nothing. On other queries about the same codebases
// recall at 5, 10 and 20 was .837, .891 and .921 with the reranker, and .844, .888 and
// .913 without it. Diversity helps where chunks of one document stand close together,
// and does nothing for abstracts.
package local
