// Package signature signs the releases of plugins, and says who signed one.
//
// What is signed is the digest of a release's index, as text: "sha256:HEX". Because the index names
// the digests of everything else, that covers the programs of all platforms and the description. Keys are
// minisign's, plain Ed25519 keys, and, for checking alone, the plain keys of cosign.
//
// A signer is written as "minisign:RWQ...", "ed25519:BASE64" (both are the public key itself) or
// "cosign:sha256:HEX" (the sha256 of the public key in DER, since its signatures do not bring the key along).
//
// The package knows neither registries nor lock files, and does not decide whom to trust: package
// install does. Signatures of cosign without a key (by certificates and a log of them) are not checked here.
package signature
