// Package transformer computes the hidden states of encoders of the BERT family: BERT,
// DistilBERT, RoBERTa, XLM-RoBERTa, MPNet and ModernBERT.
//
// They differ in how a token's position is told to the model, in where layers are
// normalised, in one sublayer and in the names of their tensors. So there is one forward
// pass, and [Config] and the table of names say what a model does. The texts of a batch go
// through the layers as one matrix with a row for each token and no padding. Matrices wider
// than the hidden states are computed and used a few columns at a time, and attention is
// computed for some rows of a text at a time, so that the memory for a text grows with its
// length, not with its square.
//
// The package knows no files but weights: package folder reads the configuration. What
// becomes of the hidden states, pooling and heads, is the matter of package encoder.
package transformer
