package publish

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/racflow/racflow/engine/plugin/lock"
	"github.com/racflow/racflow/engine/program"
)

var platformName = regexp.MustCompile(`^([a-z0-9]+)_([a-z0-9]+)$`)

// Programs finds the programs of a folder by platform, os/arch. All are of one plugin, whose name it returns.
func Programs(dist string) (name string, all map[string]program.Program, err error) {
	entries, err := os.ReadDir(dist)
	if err != nil {
		return "", nil, fmt.Errorf("read the built programs: %w", err)
	}
	all = map[string]program.Program{}
	for _, e := range entries {
		m := platformName.FindStringSubmatch(e.Name())
		if m == nil || !e.IsDir() {
			continue
		}
		found, err := program.Find([]string{filepath.Join(dist, e.Name())})
		if err != nil {
			return "", nil, err
		}
		platform := m[1] + "/" + m[2]
		if len(found) != 1 {
			return "", nil, fmt.Errorf("%s holds %d programs named %sNAME, and a release has one for each platform", filepath.Join(dist, e.Name()), len(found), program.Prefix)
		}
		p := found[0]
		if name != "" && p.Name != name {
			return "", nil, fmt.Errorf("%s holds programs of the plugins %q and %q: publish each from a folder of its own", dist, name, p.Name)
		}
		name = p.Name
		if p.Hash, err = p.Check(); err != nil {
			return "", nil, err
		}
		all[platform] = p
	}
	if len(all) == 0 {
		return "", nil, fmt.Errorf("%s holds no built program: put them where their platform says, such as %s, or any_any for one that is the same everywhere",
			dist, filepath.Join(dist, "linux_amd64", program.Prefix+"mine"))
	}
	return name, all, nil
}

// here is the program that this machine can start.
func here(all map[string]program.Program) (program.Program, error) {
	for _, platform := range []string{runtime.GOOS + "/" + runtime.GOARCH, lock.AnyPlatform} {
		if p, ok := all[platform]; ok {
			return p, nil
		}
	}
	return program.Program{}, fmt.Errorf("none of the programs runs on this machine, and one has to describe the plugin: build %s_%s, too", runtime.GOOS, runtime.GOARCH)
}

// folderName is the name of a platform's folder.
func folderName(platform string) string { return strings.Replace(platform, "/", "_", 1) }
