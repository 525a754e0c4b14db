// Package dialect defines the request to a language model and its reply, independent of any provider. It also defines
// the formats in which providers expect requests and send replies.
//
// A Request says what a stage wants. Its Key identifies the reply in the response cache. So a key depends on what the
// stage and the author of the file want, and not on which fields a model refuses. A Dialect writes a Request as the
// body of a provider's request and reads the reply. OpenAI is the dialect of OpenAI, Azure and every compatible
// service; anthropic.go has the other one.
//
// A Request asks for a structured answer in one of four Forms: by a strict JSON schema, as any JSON object, as the
// arguments of a tool call, or by an instruction in the prompt alone.
//
// OpenAI's body is written with go-openai's types, except where they omit zero or empty values (temperature, the
// content of a message) or lack a field. No method looks at the model's name.
//
// A server with OpenAI's format may answer with a stream of events. Join combines them into one reply, which Read
// then reads like any other.
//
// The package sends nothing and does not know what a model accepts: package profile changes a Request before it is
// written. The package does not remove thoughts under a tag from the text of an answer: sdk/support does.
package dialect
