package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk/support"
)

// The files of a model.
const (
	configFile  = "config.json"
	weightsFile = "model.safetensors"
	indexFile   = "model.safetensors.index.json"
	modulesFile = "modules.json"
)

// Limits of files other than weights, in bytes.
const (
	maxSettings  = 1 << 20
	maxIndex     = 16 << 20
	maxTokenizer = 64 << 20
)

// fetch downloads or copies one file of a source to the pull's place. The error is fs.ErrNotExist
// if the source has no such file.
type fetch func(ctx context.Context, name string, limit int64) error

// contents determines which files of a model racflow's stages read, and fetches them into dir.
// Large files come last.
func (p *pull) contents(ctx context.Context, from fetch, dir string) error {
	get := func(ctx context.Context, name string, limit int64) error {
		err := from(ctx, name, limit)
		if errors.Is(err, fs.ErrNotExist) { // an earlier pull may have left this file from another revision
			at, _ := p.place.file(name)
			return errors.Join(err, removed(at))
		}
		return err
	}
	if m := p.known; m != nil && m.Listed {
		for _, f := range m.Files {
			if err := get(ctx, f.Path, p.left()); err != nil && !(f.Optional && errors.Is(err, fs.ErrNotExist)) {
				return err
			}
		}
		return nil
	}
	optional := func(limit int64, names ...string) error {
		for _, name := range names {
			if err := get(ctx, name, limit); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		return nil
	}
	if err := optional(maxSettings, modulesFile, "config_sentence_transformers.json"); err != nil {
		return err
	}
	root, modules, err := readModules(dir)
	if err != nil {
		return err
	}
	if err := get(ctx, path.Join(root, configFile), maxSettings); err != nil {
		return missing(err, fmt.Sprintf("there is no %s: the name is wrong, or it is no model that racflow reads", path.Join(root, configFile)))
	}
	if err := readable(filepath.Join(dir, filepath.FromSlash(root))); err != nil {
		return err
	}
	if err := optional(maxSettings, path.Join(root, "sentence_bert_config.json"), path.Join(root, "tokenizer_config.json")); err != nil {
		return err
	}
	if modules == nil { // without modules.json the pooling may still be given
		if err := optional(maxSettings, "1_Pooling/config.json"); err != nil {
			return err
		}
	}
	for _, m := range modules {
		if err := p.module(ctx, get, m); err != nil {
			return err
		}
	}
	err = get(ctx, path.Join(root, "tokenizer.json"), maxTokenizer)
	if errors.Is(err, fs.ErrNotExist) {
		err = missing(get(ctx, path.Join(root, "vocab.txt"), maxTokenizer), "it has neither tokenizer.json nor vocab.txt")
	}
	if err != nil {
		return err
	}
	return p.weights(ctx, get, dir, root)
}

// removed deletes a file unless it is gone already.
func removed(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// missing replaces the error of a missing file by an error with the given meaning.
func missing(err error, meaning string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New(meaning)
	}
	return err
}

const pickled = "; weights in pickles (pytorch_model.bin) are never read, since reading one may run a program: " +
	"look for a revision with safetensors, such as --revision refs/pr/1, or load it with transformers, write it with save_pretrained(FOLDER), and pull the FOLDER"

// weights fetches the weights: one file, or the files that their index names.
func (p *pull) weights(ctx context.Context, get fetch, dir, root string) error {
	err := get(ctx, path.Join(root, weightsFile), p.left())
	if err == nil {
		return checkWeights(filepath.Join(dir, filepath.FromSlash(root), weightsFile))
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := get(ctx, path.Join(root, indexFile), maxIndex); err != nil {
		return missing(err, "it has no weights as safetensors (model.safetensors)"+pickled)
	}
	shards, err := readIndex(filepath.Join(dir, filepath.FromSlash(root), indexFile))
	if err != nil {
		return err
	}
	for _, shard := range shards {
		if err := get(ctx, path.Join(root, shard), p.left()); err != nil {
			return missing(err, fmt.Sprintf("%s names %s, which is not there", indexFile, shard))
		}
		if err := checkWeights(filepath.Join(dir, filepath.FromSlash(root), shard)); err != nil {
			return err
		}
	}
	return nil
}

// module is a step of a model in the format of sentence-transformers.
type module struct {
	Path string `json:"path"`
	Type string `json:"type"`
}

// is reports whether the module's class has that name, in any package.
func (m module) is(name string) bool { return m.Type == name || strings.HasSuffix(m.Type, "."+name) }

// module fetches the files of one module. It also fetches settings of unknown modules, if there are
// any: the stage reports the unknown module.
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

// modulePath matches the folder of a module, directly in the model's folder.
var modulePath = support.Pattern(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// readModules reads modules.json, if it exists. It returns the folder of the transformer, and the
// later modules that have a folder.
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
		if m.Path != "" && !modulePath().MatchString(m.Path) {
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

// mostShards is the highest number of files for the weights.
const mostShards = 200

// shardName matches a file of weights in the folder of their index.
var shardName = support.Pattern(`^[A-Za-z0-9][A-Za-z0-9._-]*\.safetensors$`)

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
		if !shardName().MatchString(shard) {
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
