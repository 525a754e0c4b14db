package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/racflow/racflow/engine/plugin/publish"
	"github.com/racflow/racflow/engine/plugin/registry"
	"github.com/racflow/racflow/engine/plugin/signature"
)

// keyPassword names the variable with the password of a private key, for where nobody can be asked.
const keyPassword = "RACFLOW_KEY_PASSWORD" //nolint:gosec // a name

func newPluginPublish() *cobra.Command {
	var key string
	c := &cobra.Command{
		Use:   "publish DIST TARGET",
		Short: "Publish a release of your plugin, signed",
		Long: `Upload the built programs of a plugin as a release, and sign it.

DIST holds a folder for each platform, OS_ARCH as Go names them, with the program in it;
any_any is for a plugin that is the same everywhere:

    dist/linux_amd64/racflow-plugin-mine
    dist/darwin_arm64/racflow-plugin-mine
    dist/any_any/racflow-plugin-mine/        a folder, with the program of its name in it

One of them has to run on this machine: it is started to describe the plugin. The version
is the one that the plugin says of itself. TARGET is REGISTRY/REPOSITORY, with the
credentials of docker login, or a folder for an OCI layout, "./folder" or "oci:folder".
A version that is there already is not replaced.

--key names a private key: one of minisign (minisign -G), or an Ed25519 key in PEM (openssl
genpkey -algorithm ed25519). The password of one that has one is asked for, or read from
RACFLOW_KEY_PASSWORD. What is signed is the text sha256:HEX, the digest that is printed.`,
		Example: `  racflow plugin publish dist ghcr.io/acme/racflow-plugin-mine --key minisign.key
  racflow plugin publish dist ./releases`,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			target, err := registry.Parse(args[1], ".")
			if err != nil {
				return err
			}
			if target.Archive != nil {
				return errors.New("a release is published to a registry's repository or a folder, not to the address of an archive")
			}
			var signer *signature.PrivateKey
			if key != "" {
				k, err := signature.ReadPrivateKey(key, func() (string, error) { return askPassword(key) })
				if err != nil {
					return err
				}
				signer = &k
			}
			r, err := publish.Publish(c.Context(), args[0], target, signer, describeProgram)
			if err != nil {
				return err
			}
			signed := "not signed: --key signs it"
			if r.Signer != "" {
				signed = "signed by " + r.Signer
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s %s is published for %s\n  %s\n  %s\n", r.Name, r.Version, strings.Join(r.Platforms, ", "), r.Digest, signed)
			return err
		},
	}
	c.Flags().StringVar(&key, "key", "", "sign with the private key in `FILE`")
	return c
}

// askPassword asks for the password of a key's file.
func askPassword(path string) (string, error) {
	if word := os.Getenv(keyPassword); word != "" {
		return word, nil
	}
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return "", fmt.Errorf("%s has a password: set %s, or publish from a terminal", path, keyPassword)
	}
	fmt.Fprintf(os.Stderr, "password of %s: ", path)
	word, err := term.ReadPassword(int(os.Stdin.Fd()))
	fmt.Fprintln(os.Stderr)
	return string(word), err
}
