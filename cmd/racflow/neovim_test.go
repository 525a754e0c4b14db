package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A real editor, set up as examples/editor says, shows what the server says.
func TestNeovim(t *testing.T) {
	nvim, err := exec.LookPath("nvim")
	if err != nil {
		t.Skip("nvim is not installed (apt-get install neovim)")
	}
	dir := t.TempDir()
	setup, err := filepath.Abs("../../examples/editor/nvim.lua")
	if err != nil {
		t.Fatal(err)
	}
	probe, err := filepath.Abs("testdata/neovim.lua")
	if err != nil {
		t.Fatal(err)
	}
	text := "pipeline \"p\" {\n  elect \"e\" {\n    use = \"sfot\"\n    flag = \"answer == ''\"\n  }\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "edited.racflow.hcl"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	racflow(t, dir) // which the editor finds in PATH
	c := exec.CommandContext(t.Context(), nvim, "--headless", "-u", "NONE", "-i", "NONE", "-n",
		"-c", "luafile "+setup, "-c", "edit edited.racflow.hcl", "-c", "luafile "+probe)
	c.Dir = dir
	c.Env = append(os.Environ(), "HOME="+dir, "XDG_STATE_HOME="+dir, "XDG_CACHE_HOME="+dir, "XDG_DATA_HOME="+dir, "PATH="+dir+":"+os.Getenv("PATH"))
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	seen, err := os.ReadFile(filepath.Join(dir, "seen"))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		`diagnostic: 3:11 Unknown stage: No plugin offers the elect stage "sfot". Did you mean "soft"?`,
		"completion: majority soft weighted learned first\n", "hover: **flag** (rule)\n", "mended: 1\n", `formatted:     use  = "soft"` + "\n",
	} {
		if !strings.Contains(string(seen), want) {
			t.Errorf("%q is missing in\n%s\n%s", want, seen, out)
		}
	}
}
