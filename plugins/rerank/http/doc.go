// Package http is a reranker: a cross-encoder behind a service that scores
// documents against a query. It speaks the forms of Cohere (v2), Jina, Voyage,
// Text Embeddings Inference, vLLM and llama.cpp.
//
// A request holds one item and at most so many of its candidates as the service
// takes; where there are more, several are sent and their scores put together:
// a cross-encoder scores each document on its own. A document is the candidate's
// context, if there is one, and below it the text, cut to a number of
// characters: no service says beforehand how many tokens a text has, and some
// refuse what is too long for their model. Candidates without any text are not
// sent and not ranked.
//
// A reply is checked: every index is one of the documents and comes once, every
// score is a finite number. Documents that it leaves out are left out of the
// ranking, with a word in the log; a reply without any is a failure. Candidates
// with the same score stay in the order in which they were found.
//
// Scores are kept through sdk.Host under the endpoint, the model, further
// fields, the query and the documents of a request. What a request cost counts
// in tokens, where the service tells them; Cohere bills searches, which a price
// per token cannot express.
package http
