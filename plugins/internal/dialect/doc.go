// Package dialect holds what a language model is asked and what it replies, in no
// provider's form, and the forms in which providers want and give it.
//
// A Request says what a stage wants. Its Key is that of the reply in the response
// cache, so a key depends on what the stage and the person who wrote the file want, and not
// on what a model turns out to refuse. A Dialect writes a Request as the body of
// a provider's request and reads the reply. OpenAI is the dialect of OpenAI, Azure and everything that is compatible;
// the packages below this one have those of others.
//
// A structured answer is asked for in one of four Forms: by a strict JSON schema, as
// any JSON object, as the arguments of a tool call, or by an instruction in the prompt alone.
//
// OpenAI's body is written with go-openai's types, except where they leave out what is 0 or
// empty (temperature, the content of a message) or lack a field. No method looks at the model's name.
//
// A server with OpenAI's form may answer with a stream of events. Join makes one reply of it, which Read then
// reads like any other.
//
// The package sends nothing, and does not know which model takes what: package profile
// changes a Request for that before it is written. What stands in the text of an answer, such as
// thoughts under a tag, is left there: sdk/support reads it.
package dialect
