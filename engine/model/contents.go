package model

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// The files of a model.
const (
	configFile  = "config.json"
	weightsFile = "model.safetensors"
	indexFile   = "model.safetensors.index.json"
	modulesFile = "modules.json"
)

// The most bytes of a file that is no weights.
const (
	maxSettings  = 1 << 20
	maxIndex     = 16 << 20
	maxTokenizer = 64 << 20
)

// fetch brings one file of a source to the place of the pull. The error is fs.ErrNotExist where
// the source has none.
type fetch func(ctx context.Context, name string, limit int64) error

// contents finds out which files a model has that racflow's stages read, and brings them. dir is
// where they arrive. What would be large comes last.
func (p *pull) contents(ctx context.Context, from fetch, dir string) error {
	get := func(ctx context.Context, name string, limit int64) error {
		err := from(ctx, name, limit)
		if errors.Is(err, fs.ErrNotExist) { // an earlier pull may have left one of another revision
			at, _, _ := p.place.file(name)
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
	if modules == nil { // without modules.json pooling may still be said
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

// removed makes a file be gone.
func removed(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// missing says what it means that a file is not there.
func missing(err error, meaning string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New(meaning)
	}
	return err
}

const pickled = "; weights in pickles (pytorch_model.bin) are never read, since reading one may run a program: " +
	"look for a revision with safetensors, such as --revision refs/pr/1, or load it with transformers, write it with save_pretrained(FOLDER), and pull the FOLDER"

// weights brings the weights, in one file or in those that their index names.
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
