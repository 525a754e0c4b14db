// Package relevance judges what a search found for a question without reading it as a
// language model does: which of its words matched, and whether it is likely that anything
// that was found answers it.
//
// A search always finds something. Its scores do not say whether that answers: they are
// comparable only within one question. Judge uses two features that mean the same for each
// question: the cosine of the nearest candidate, and the share of the question's words,
// weighted by idf among the candidates, that one of the first five has. A logistic
// regression makes a probability of them, fitted on four collections that count the same,
// where half of the questions have an answer: the example documentation (54 questions),
// Anthropic's nine codebases (124), SciFact (300 claims) and CLINC150 as a list of
// frequent questions (300 utterances, and 300 that are out of its scope). Questions without an
// answer are those about another of these collections ("foreign"), and the collection's
// own with all documents left out that answer them ("near").
//
// On each collection, by a model that was fitted on the other three: the area under the ROC
// curve over all, foreign and near ones; then how many of the questions Judge calls
// unlikely, in percent.
//
//	                     AUC all  foreign  near   has answer  foreign  near
//	minilm
//	  documentation          .83      .98   .68           13       96    22
//	  nine codebases         .96     1.00   .91            0       93    19
//	  CLINC150               .92     1.00   .83            0       73     2   out of scope: .92, 7
//	  SciFact                .83      .96   .70            0       44     0
//	another embedder, by words alone (candidates of hashing and of minilm)
//	  documentation          .81      .95   .68            6       72    10
//	  nine codebases         .95      .99   .90            0       57    10
//	  CLINC150               .83      .95   .73           10       87    33   out of scope: .81, 38
//	  SciFact                .76      .82   .69            2       19     4
//
// So a question about something else is recognised, and one that the documents come close to
// is mostly not. By words alone the probability does not carry over well enough to be shown (an AUC
// of .76), and a question in other words than the answer's may seem to have none. All
// collections are English: in another language only its analyzer's own stop words are left out.
//
// The package decides nothing: passages are shown all the same.
package relevance
