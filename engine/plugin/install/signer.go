package install

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/racflow/racflow/engine/plugin/registry"
	"github.com/racflow/racflow/engine/plugin/signature"
)

// signer checks who signed a release; before is who signed what is locked, empty for nobody. It returns whom to
// lock, empty for nobody.
func (in *Installer) signer(ctx context.Context, name string, release *registry.Release, before string) (string, error) {
	all, err := release.Signatures(ctx)
	if err != nil {
		return "", err
	}
	var keys []signature.Key
	key, given := in.Keys[name]
	if given {
		keys = append(keys, key)
	}
	signers, bad := signature.Signers(release.Digest, all, keys...)
	what := fmt.Sprintf("version %s of %q", release.Version, name)
	wanted := func(s string) bool {
		return (!given || key.Is(s)) && (before == "" || s == before || in.accepted(name))
	}
	accept := fmt.Sprintf("if its author has changed the key, accept the new one with --trust-new-signer %s", name)
	switch i := slices.IndexFunc(signers, wanted); {
	case slices.Contains(signers, before) && wanted(before):
		return before, nil
	case i >= 0:
		return signers[i], nil
	case errors.Is(bad, signature.ErrKeyNeeded) && !in.accepted(name):
		return "", fmt.Errorf("%s is not checked yet: %w; pass the public key with --key %s=cosign.pub, or take it unsigned with --trust-new-signer %s", what, signature.ErrKeyNeeded, name, name)
	case given && len(signers) > 0:
		return "", fmt.Errorf("%s is signed by %s, and not by the key that --key names: ask its author which key is right", what, signers[0])
	case given:
		return "", fmt.Errorf("%s is not signed by the key that --key names%s", what, because(bad))
	case len(signers) > 0:
		return "", fmt.Errorf("%s is signed by %s, and what is locked by %s: %s", what, signers[0], before, accept)
	case bad != nil && !errors.Is(bad, signature.ErrKeyNeeded):
		return "", fmt.Errorf("the signature of %s is not valid: %w; do not use it, and ask its author", what, bad)
	case before != "" && !in.accepted(name):
		return "", fmt.Errorf("%s is not signed, and what is locked is signed by %s: ask its author; to take it unsigned, pass --trust-new-signer %s", what, before, name)
	}
	return "", nil
}

func because(err error) string {
	if err == nil {
		return ": it has no signature"
	}
	return ": " + err.Error()
}
