// Package distil makes labelled rows of what a run answered surely, so that a stage can
// learn from them what the run's voters know: knowledge distillation (Hinton, Vinyals and
// Dean, "Distilling the knowledge in a neural network", 2015) with labels that are hard and
// chosen, as in self-training.
//
// Answers come from the journal of the run, texts from its input, which has to be as it
// was. An item is left out that has no answer, failed, lacks a voter or is flagged, and
// one whose confidence is below the bound. Where the election estimates no confidence,
// the agreement of the voters stands for it.
//
// A text that occurs several times is one row, of the surest answer; where the run
// answered it differently, be it as unsurely as can be, nobody knows its label, and it is
// left out.
//
// Each row says where its label is from: the run and when it began, the pipeline, how
// sure it was, and which voters and models gave that label, or
// who decided it.
//
// The package knows journals and rows. It runs no stage and asks for no answer.
package distil
