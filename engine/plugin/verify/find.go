package verify

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/racflow/racflow/engine/plugin/build"
	"github.com/racflow/racflow/engine/program"
)

// Find returns the program at a path: a file or folder named racflow-plugin-NAME, or the folder of
// a project, which is built; what takes long, and what compilers say, goes to log. folders are those in
// which its verify.json may be.
func Find(ctx context.Context, path string, log io.Writer) (p program.Program, folders []string, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return p, nil, err
	}
	base := filepath.Base(path)
	_, notItself := os.Stat(filepath.Join(path, base))
	_, notGo := os.Stat(filepath.Join(path, "go.mod"))
	if info, err := os.Stat(path); err == nil && info.IsDir() && (notGo == nil || notItself != nil || !strings.HasPrefix(base, program.Prefix)) {
		p, err = build.Project(ctx, path, log)
		return p, []string{path}, err
	}
	p, err = program.At(path)
	return p, []string{p.Folder, filepath.Dir(path)}, err
}
