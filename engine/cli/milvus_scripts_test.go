package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// milvusScripts are the scripts about the work of a store: entries are put, changed in place, found,
// filtered, listed and removed. The steps before and after do not depend on the store.
var milvusScripts = []string{"documents", "enrich", "eval_retrieval", "filter", "knowledge"}

// TestMilvusScripts runs these scripts with Milvus instead of the embedded store; the output has to
// be the same. A line that begins with [!milvus] concerns the files of the embedded store.
func TestMilvusScripts(t *testing.T) {
	p := scripts(t)
	for _, name := range milvusScripts {
		p.Files = append(p.Files, filepath.Join(p.Dir, name+".txtar"))
	}
	p.Dir = ""
	e := engineFor(t)
	setup := p.Setup
	p.Setup = func(s *testscript.Env) error {
		if err := setup(s); err != nil {
			return err
		}
		s.Setenv("STORE", "milvus")
		s.Setenv("MILVUS_ADDRESS", e.address())
		return storeInMilvus(s.WorkDir)
	}
	p.Condition = func(condition string) (bool, error) { return condition == "milvus", isCondition(condition) }
	testscript.Run(t, p)
}

func isCondition(condition string) error {
	if condition != "milvus" && condition != "left" {
		return fmt.Errorf("there is no condition %q", condition)
	}
	return nil
}

var (
	embeddedStore = regexp.MustCompile(`store \{\s+use\s+= "local"`)
	wideEmbedder  = regexp.MustCompile(`embed \{ use = "hashing" \}`)
)

// storeInMilvus replaces the embedded store in the pipelines of a folder; the names of the
// collections begin with the folder's name. Vectors get 256 dimensions instead of 4,096: with the
// latter, Milvus Lite 2.5.1 takes half a gigabyte of memory for each collection, however few rows it
// has.
func storeInMilvus(dir string) error {
	prefix := regexp.MustCompile(`[^A-Za-z0-9]`).ReplaceAllString(filepath.Base(dir), "")
	store := fmt.Sprintf("store {\n use = \"milvus\"\n config {\n  address = env(\"MILVUS_ADDRESS\")\n  prefix = %q\n  index = \"FLAT\"\n }\n", prefix)
	return filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".hcl") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text = embeddedStore.ReplaceAllLiteral(text, []byte(store))
		text = wideEmbedder.ReplaceAllLiteral(text, []byte("embed {\n use = \"hashing\"\n config { dimension = 256 }\n}"))
		return os.WriteFile(path, text, 0o600)
	})
}
