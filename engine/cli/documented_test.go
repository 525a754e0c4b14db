package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// assignment is a variable of the environment in front of a command.
var assignment = regexp.MustCompile(`^[A-Z_]+=\S+ `)

// documented returns the racflow commands in the code blocks of a document, without comments and
// without the rest of a pipe.
func documented(t *testing.T, path string) (commands []string) {
	fenced := false
	for line := range strings.Lines(readFile(t, "", path)) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		command, indented := strings.CutPrefix(line, "    ")
		if !fenced && !indented {
			continue
		}
		command, _, _ = strings.Cut(strings.TrimSpace(command), " # ")
		for assignment.MatchString(command) {
			command = assignment.ReplaceAllString(command, "")
		}
		command = strings.TrimPrefix(command, "bin/")
		for _, part := range strings.Split(command, " && ") {
			if part, _, _ = strings.Cut(part, " | "); strings.HasPrefix(part, "racflow ") {
				commands = append(commands, strings.TrimSpace(part))
			}
		}
	}
	return commands
}

// TestDocumentedCommands checks that racflow accepts every command line in a document.
func TestDocumentedCommands(t *testing.T) {
	root, here, total := absolute(t, "../.."), t.TempDir(), 0
	write(t, here, "pipeline.hcl", `pipeline "p" {}`) // for commands that name no file
	t.Chdir(here)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "quern" || name == "testdata" || name == "templates" || name == "cmd"):
			return fs.SkipDir
		case filepath.Ext(name) != ".md" || name == "CHANGELOG.md" || name == "ARCHITECTURE.md" || name == "SECURITY.md": // the last two contain drawings
			return nil
		}
		commands := documented(t, path)
		total += len(commands)
		for _, command := range commands {
			t.Run(strings.TrimPrefix(path, root+"/"), func(t *testing.T) { parses(t, command) })
		}
		return nil
	})
	if err != nil || total < 70 {
		t.Errorf("%d commands, %v", total, err)
	}
}

// TestReadme types the commands of README.md, one after the other, in a folder with the reader's own
// rows, texts and documents. Language models are scripted, and texts are embedded without a model.
func TestReadme(t *testing.T) {
	leaveTo(t, "command", "it is a run for each command")
	server := modelserver.Serve(t, modelserver.Options{})
	t.Setenv(trustVariable, "") // nobody has to grant anything for the documented commands
	t.Setenv("OPENAI_BASE_URL", server.URL)
	t.Setenv("OPENAI_API_KEY", "key-of-tests")
	t.Setenv("RACFLOW_VAR_embedder", "hashing")
	t.Setenv("RACFLOW_VAR_price", "{ input = 0.15, output = 0.6 }") // a scripted model has no known price
	dir := t.TempDir()
	for _, folder := range []string{"pipelines", "examples"} {
		if err := os.Symlink(absolute(t, "../../"+folder), filepath.Join(dir, folder)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, dir, "tickets.csv", strings.NewReplacer(",", ";", `"`, "'", "\t", ",").Replace(fewIntents(t)))
	t.Setenv("RACFLOW_VAR_train", filepath.Join(dir, "tickets.csv"))
	write(t, dir, "new.csv", "text\nwhere is my parcel?\n")
	if err := os.CopyFS(filepath.Join(dir, "handbook"), os.DirFS("../../examples/docs/quern/guide")); err != nil {
		t.Fatal(err)
	}
	typed := 0
	for _, command := range documented(t, "../../README.md") {
		if strings.Contains(command, "=milvus") || strings.Contains(command, "model pull") { // need a server, and a hub
			continue
		}
		typed++
		good(t, racflow(t, dir, wordsOf(t, strings.TrimPrefix(command, "racflow "))...))
	}
	if typed < 10 {
		t.Errorf("README.md has %d commands", typed)
	}
	if answers := readFile(t, dir, "answers.csv"); !strings.Contains(answers, "where is my parcel?") {
		t.Errorf("new.csv is answered by\n%s", answers)
	}
}
