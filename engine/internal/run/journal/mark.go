package journal

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/racflow/racflow/sdk/support"
)

// This file marks the manifests of runs that the user began. A state folder may come from elsewhere, with commands,
// variables and servers that the user never chose. A mark is a keyed digest of the text before it; the key is in the
// user's configuration. The mark is the manifest's last property before the checksum.

// sign adds the mark to a manifest's text. Without a place for the key, it adds none.
func sign(text []byte) []byte {
	key, err := userKey()
	if errors.Is(err, fs.ErrNotExist) {
		key, err = newKey()
	}
	if err != nil {
		return text
	}
	text = bytes.TrimSuffix(text, []byte("\n}"))
	return append(mark(key, text), "\n}"...)
}

// signed reports whether a manifest's text, with its checksum, has the mark of this user.
func signed(text []byte) bool {
	key, err := userKey()
	at := bytes.LastIndex(text, []byte(pretty.before))
	before := at - len(mark(nil, nil))
	return err == nil && before > 0 && hmac.Equal(mark(key, text[:before:before]), text[:at])
}

// mark returns a text with its mark.
func mark(key, text []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(text)
	return fmt.Appendf(text, ",\n  \"mark\": \"%x\"", h.Sum(nil))
}

// keyPath returns the path of the user's key.
func keyPath() (string, error) {
	dir, err := os.UserConfigDir()
	return filepath.Join(dir, "racflow", "key"), err
}

// userKey returns the user's key. The error is fs.ErrNotExist if there is none yet.
func userKey() ([]byte, error) {
	path, err := keyPath()
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(path)
	if err == nil && len(key) != sha256.Size {
		err = fmt.Errorf("%s is damaged: remove it", path)
	}
	return key, err
}

// newKey makes the user's key, or returns the key that another process makes at the same time.
func newKey() ([]byte, error) {
	path, err := keyPath()
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err != nil {
		return nil, err
	}
	f, err := support.CreateTemp(filepath.Dir(path), "key-*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // a leftover file does no harm
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails
	_, err = f.Write(key)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return userKey()
}
