// Package profile keeps what is known of language models behind services: which fields of a
// request they take, whether they think first, how many bytes a token has. Stages find it
// out (sdk.Host.KeepProfile), and read it before they ask (sdk.Host.Profile).
//
// A Store is a folder with a readable JSON file for each endpoint and model, which people
// may edit: the next stage that opens goes by what they wrote. A run keeps what it has used
// in a folder of its own, and a resumed run goes by that, whatever has been found out since.
//
// The package does not know what a profile says: that is between a stage and itself, and a
// third party's stage may keep what it likes. Secrets are kept out by package host.
package profile
