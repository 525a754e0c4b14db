package guard

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
)

// minToken is how many bytes a token has at least. Shorter ones can be guessed.
const minToken = 16

// digest is all that is kept of a token.
type digest [sha256.Size]byte

// Tokens are what callers show to be let in, as "Authorization: Bearer TOKEN". Their
// digests are kept, and never the tokens.
type Tokens struct {
	fixed []digest
	file  *watched[[]digest] // nil: there is none
}

// NewTokens reads tokens from a text and from a file, either of which may be empty; nil
// where both are. In both stands one token a line; empty lines and those that begin with #
// are skipped. The file is read again when it has changed.
func NewTokens(text, path string, log *slog.Logger) (*Tokens, error) {
	t := &Tokens{}
	if text != "" {
		var err error
		if t.fixed, err = parseTokens([]byte(text)); err != nil {
			return nil, err
		}
	}
	if path != "" {
		var err error
		t.file, err = watch(log, func() ([]digest, error) { return readTokens(path) }, path)
		if err != nil {
			return nil, err
		}
	}
	if t.fixed == nil && t.file == nil {
		return nil, nil
	}
	return t, nil
}

func readTokens(path string) ([]digest, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	all, err := parseTokens(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, nil
}

// parseTokens never puts a token into an error.
func parseTokens(content []byte) (all []digest, err error) {
	in := bufio.NewScanner(bytes.NewReader(content))
	for n := 1; in.Scan(); n++ {
		token := strings.TrimSpace(in.Text())
		switch {
		case token == "" || token[0] == '#':
			continue
		case len(token) < minToken:
			return nil, fmt.Errorf("line %d: a token of %d characters can be guessed: take at least %d, such as those of openssl rand -hex 32", n, len(token), minToken)
		case strings.ContainsAny(token, " \t"):
			return nil, fmt.Errorf("line %d: a token holds no space; write one token a line", n)
		}
		all = append(all, sha256.Sum256([]byte(token)))
	}
	if err := in.Err(); err != nil {
		return nil, errors.New("a line is too long for a token")
	}
	if len(all) == 0 {
		return nil, errors.New("there is no token: write one a line")
	}
	return all, nil
}

// admit reports whether the value of an Authorization header has a valid token. How long
// that takes tells nothing about the tokens.
func (t *Tokens) admit(header string) bool {
	scheme, token, _ := strings.Cut(header, " ")
	given := sha256.Sum256([]byte(strings.TrimSpace(token)))
	found := 0
	for _, all := range [][]digest{t.fixed, t.fromFile()} {
		for i := range all {
			found |= subtle.ConstantTimeCompare(all[i][:], given[:])
		}
	}
	return found == 1 && strings.EqualFold(scheme, "Bearer")
}

func (t *Tokens) fromFile() []digest {
	if t.file == nil {
		return nil
	}
	return t.file.get()
}
