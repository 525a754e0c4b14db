// Package encoder has the embedders that compute a model on this machine's processor: the
// stage encoder for any folder that package plugins/internal/encoder can compute, and
// minilm, its preset for the model that racflow is measured with.
//
// The precision belongs to the vectors: another one is another generation of a knowledge. So
// it is chosen once for each generation, and every later process, on any machine, computes in
// the same numbers, fast or slowly. How it is chosen where the file leaves it open:
//
//   - minilm: int8, on every processor. On public sets that lost 0.03 points of accuracy (10,909
//     items) and 0.0010 of nDCG@10 (1,083 queries); of the latter a loss of more than 0.0033 is
//     ruled out with a confidence of 95 % (TestQuality). It is a resolved value (sdk.Resolver), so
//     a generation that an earlier version made in float32 stays in use in float32.
//   - encoder: it depends on the model, so int8 is compared with float32 on some of the
//     knowledge's own texts before anything is embedded (sdk.Fitter; auto.go). Where a
//     comparison was made once, the stage learns no more, however the knowledge changes.
//
// The package fetches no models: `racflow model pull` does. It ranks nothing.
package encoder
