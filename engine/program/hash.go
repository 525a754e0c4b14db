package program

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
)

// CheckHash reports whether a program has the sha256 that it was pinned to, in hex.
func CheckHash(path, want string) error {
	got, err := HashFile(path)
	if err != nil {
		return err
	}
	if !strings.EqualFold(got, want) {
		return fmt.Errorf("%s is not the program that was pinned: its sha256 is %s, not %s; "+
			"if it was updated on purpose, pin it anew", path, got, want)
	}
	return nil
}

// HashCommand returns the sha256 of a program in hex. If its command line names other files,
// such as the script of an interpreter, it is the hash of all their hashes. It is empty for an
// empty command, and does not cover files that these load in turn.
func HashCommand(command []string) (string, error) {
	var hashes []string
	for i, part := range command {
		if i == 0 {
			path, err := exec.LookPath(part)
			if err != nil && !errors.Is(err, exec.ErrDot) {
				return "", nil // its start will say why
			}
			part = path
		} else if info, err := os.Stat(part); err != nil || !info.Mode().IsRegular() {
			continue
		}
		hash, err := HashFile(part)
		if errors.Is(err, fs.ErrPermission) {
			continue // it may be executed and not read: its version has to do
		}
		if err != nil {
			return "", fmt.Errorf("read the plugin %s, to know it again: %w", part, err)
		}
		hashes = append(hashes, hash)
	}
	if len(hashes) < 2 {
		return strings.Join(hashes, ""), nil
	}
	sum := sha256.Sum256([]byte(strings.Join(hashes, "\n")))
	return hex.EncodeToString(sum[:]), nil
}

// HashFile returns the sha256 of a file in hex.
func HashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
