package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// module is one step of a model as sentence-transformers write it.
type module struct {
	Path string `json:"path"`
	Type string `json:"type"`
}

// is reports whether the module's class has that name, in whichever package.
func (m module) is(name string) bool { return m.Type == name || strings.HasSuffix(m.Type, "."+name) }

// module brings the files of one module. Settings of a kind that is not known here are brought
// where there are any: the stage says that it does not know it.
func (p *pull) module(ctx context.Context, get fetch, m module) error {
	config := path.Join(m.Path, configFile)
	err := get(ctx, config, maxSettings)
	switch {
	case m.is("Pooling"), m.is("Dense"):
		if err != nil {
			return missing(err, fmt.Sprintf("%s names %s, and %s is not there", modulesFile, m.Path, config))
		}
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if !m.is("Dense") {
		return nil
	}
	weights := path.Join(m.Path, weightsFile)
	return missing(get(ctx, weights, p.left()), "it has no "+weights+pickled)
}

// modulePath is the folder of a module: one step down.
var modulePath = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// readModules reads modules.json, if there is one: the folder of the transformer, and the modules
// after it that have a folder.
func readModules(dir string) (root string, rest []module, _ error) {
	raw, err := readBounded(filepath.Join(dir, modulesFile), maxSettings)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, nil
	}
	var all []module
	if err == nil {
		err = json.Unmarshal(raw, &all)
	}
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", modulesFile, err)
	}
	for i, m := range all {
		m.Path = strings.TrimSuffix(m.Path, "/")
		if m.Path != "" && !modulePath.MatchString(m.Path) {
			return "", nil, fmt.Errorf("%s names the folder %.100q: it has to be one below the model's", modulesFile, m.Path)
		}
		switch {
		case i == 0:
			root = m.Path
		case m.Path != "":
			rest = append(rest, m)
		}
	}
	return root, rest, nil
}

// mostShards is how many files the weights may be in.
const mostShards = 200

// shardName is the file of a part of the weights: beside their index.
var shardName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*\.safetensors$`)

// readIndex returns the files that an index of weights names.
func readIndex(file string) ([]string, error) {
	raw, err := readBounded(file, maxIndex)
	var index struct {
		Weights map[string]string `json:"weight_map"`
	}
	if err == nil {
		err = json.Unmarshal(raw, &index)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", indexFile, err)
	}
	var shards []string
	for tensor, shard := range index.Weights {
		if !shardName.MatchString(shard) {
			return nil, fmt.Errorf("%s has the tensor %.100q in %.100q, which is not the name of a file of safetensors beside it", indexFile, tensor, shard)
		}
		shards = append(shards, shard)
	}
	slices.Sort(shards)
	shards = slices.Compact(shards)
	if len(shards) == 0 || len(shards) > mostShards {
		return nil, fmt.Errorf("%s names %d files: it has to name 1 to %d", indexFile, len(shards), mostShards)
	}
	return shards, nil
}
