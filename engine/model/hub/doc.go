// Package hub downloads files of repositories on a model hub: Hugging Face's, a mirror of it, or
// any server with its addresses, ENDPOINT/OWNER/MODEL/resolve/REVISION/PATH.
//
// The usual environment counts: HF_ENDPOINT, HF_TOKEN or the file with the token, HF_HUB_OFFLINE,
// and the proxy variables. The token goes to the endpoint's host alone, never along a redirect to
// another one. A file that was cut off is resumed where the server still has the same content,
// and what arrives is compared with the hash that the hub declares.
//
// The package does not know which files make a model, nor where they belong: package model does.
package hub
