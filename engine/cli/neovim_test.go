package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A real editor, set up as in examples/editor, shows the server's messages.
func TestNeovim(t *testing.T) {
	nvim, err := exec.LookPath("nvim")
	if err != nil {
		t.Skip("nvim is not installed (apt-get install neovim)")
	}
	text := "pipeline \"p\" {\n  elect \"e\" {\n    use = \"sfot\"\n    flag = \"answer == ''\"\n  }\n}\n"
	dir := folder(t, map[string]string{"edited.racflow.hcl": text})
	racflow(t, dir) // the editor finds it in PATH
	c := exec.CommandContext(t.Context(), nvim, "--headless", "-u", "NONE", "-i", "NONE", "-n",
		"-c", "luafile "+absolute(t, "../../examples/editor/nvim.lua"),
		"-c", "edit edited.racflow.hcl", "-c", "luafile "+absolute(t, "testdata/neovim.lua"))
	c.Dir = dir
	c.Env = append(os.Environ(), "HOME="+dir, "XDG_STATE_HOME="+dir, "XDG_CACHE_HOME="+dir, "XDG_DATA_HOME="+dir, "PATH="+dir+":"+os.Getenv("PATH"))
	out := must(t, c)
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
