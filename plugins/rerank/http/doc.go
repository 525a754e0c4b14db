// Package http is a reranker: a cross-encoder behind a service that scores documents
// against a query. It speaks the APIs of Cohere (v2), Jina, Voyage, Text Embeddings
// Inference, vLLM and llama.cpp.
//
// A request holds one item and at most as many of its candidates as the service takes.
// More candidates go in several requests, whose scores are comparable: a cross-encoder
// scores each document on its own. A document is the candidate's context, if there is
// one, and below it the text, truncated to a number of characters: no service says
// beforehand how many tokens a text has, and some refuse what is too long for their
// model. Candidates without any text are neither sent nor ranked.
//
// A reply is checked: every index is one of the documents and comes once, every score is
// a finite number. Documents that it leaves out are left out of the ranking, with a
// warning in the log; a reply without any is an error. Candidates with the same score
// stay in the order in which they were found.
//
// Scores are cached by their request. Its cost counts in tokens, where the service
// reports them; Cohere bills searches, which a price per token cannot express.
package http
