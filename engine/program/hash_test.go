package program

import (
	"os"
	"path/filepath"
	"testing"
)

// TestHashCommand knows a program by its content, and an interpreter together with
// the scripts that it is given.
func TestHashCommand(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "script")
	hash := func(content string, command ...string) string {
		t.Helper()
		if err := os.WriteFile(script, []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
		got, err := HashCommand(command)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := hash("", script); got != "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" {
		t.Errorf("the hash of an empty file is %s", got)
	}
	if one, two := hash("#!/bin/sh\n# 1", script), hash("#!/bin/sh\n# 2", script); one == two {
		t.Error("two scripts have one hash")
	}
	one, two := hash("# 1", "sh", script, "--flag"), hash("# 2", "sh", script, "--flag")
	if again := hash("# 1", "sh", script, "--flag"); one == two || one != again {
		t.Errorf("an interpreter with two scripts: %s and %s, again %s", one, two, again)
	}
	if got := hash("", filepath.Join(dir, "none")) + hash(""); got != "" {
		t.Errorf("without a program there is the hash %s", got)
	}
}
