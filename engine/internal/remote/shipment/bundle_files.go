package shipment

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/plugin"
	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/engine/internal/process/redact"
)

// Maximum bytes of files within the definition of a run: of each file, and of all together.
const (
	mostInline    = 64 << 10
	mostInlineAll = 256 << 10
)

// mostSecret is the maximum size of a file searched for secrets: a larger one is data.
const mostSecret = 16 << 20

// reads adds the pipeline file and the files that its expressions read.
func (c *collector) reads(f *pipeline.File, o engine.Options) error {
	text := string(f.Sources[f.Path].Bytes)
	if c.secrets.in(text) {
		return fmt.Errorf("a secret is written in %s, and secrets never go to the servers: write secret(\"NAME\") in its place, and set NAME in the environment of every machine", f.Path)
	}
	c.add(c.bundle.File, text, true)
	for _, name := range o.VarFiles {
		if src := f.Sources[name]; src != nil {
			c.add(c.absolute(name), c.varFile(src), true)
		}
	}
	if err := c.file(plugin.LockBeside(c.bundle.File)); !errors.Is(err, fs.ErrNotExist) && err != nil {
		return err
	}
	for _, path := range f.Reads {
		if err := c.file(path); err != nil {
			return err
		}
	}
	for _, r := range f.Required {
		for _, path := range r.Allow.Read {
			err := c.file(path)
			if info, statErr := os.Stat(path); statErr == nil && info.IsDir() {
				c.stay(path, fmt.Sprintf("the plugin %s reads this folder", r.Name))
			} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	for _, k := range f.Knowledge {
		for _, s := range k.Sources {
			if info, err := os.Stat(s.Path); err == nil {
				c.bundle.Sources = append(c.bundle.Sources, BundledSource{s.Path, info.IsDir()})
			}
		}
	}
	return nil
}

func (c *collector) absolute(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(c.bundle.Dir, path)
}

// varFile returns a file of variables without those that hold a secret.
func (c *collector) varFile(src *hcl.File) string {
	if !c.secrets.in(string(src.Bytes)) {
		return string(src.Bytes)
	}
	var kept strings.Builder
	attributes, _ := src.Body.JustAttributes() // it was read without an error
	for _, a := range slices.SortedFunc(maps.Values(attributes), func(x, y *hcl.Attribute) int { return x.Range.Start.Byte - y.Range.Start.Byte }) {
		line := string(a.Range.SliceBytes(src.Bytes))
		if c.secrets.in(line) {
			c.environment(BundledVariable{"RACFLOW_VAR_" + a.Name, true, true})
			continue
		}
		kept.WriteString(line + "\n")
	}
	return kept.String()
}

// file adds a file, unless it holds a secret.
func (c *collector) file(path string) error {
	if c.files[path] {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	if info.Size() > mostSecret {
		hash, err := program.HashFile(path)
		if err == nil {
			c.files[path] = true
			c.bundle.Files = append(c.bundle.Files, BundledFile{Path: path, Digest: hash, Size: info.Size()})
		}
		return err
	}
	text, err := os.ReadFile(path)
	switch {
	case err != nil:
		return err
	case isKey(string(text)):
		c.stay(path, "it is a private key")
	case c.secrets.in(string(text)):
		c.stay(path, "it holds a secret")
	default:
		c.add(path, string(text), false)
	}
	return nil
}

// add adds a file with its text. The bundle includes the content if within is set or there is room.
func (c *collector) add(path, text string, within bool) {
	if c.files[path] {
		return
	}
	c.files[path] = true
	sum, size := sha256.Sum256([]byte(text)), int64(len(text))
	f := BundledFile{Path: path, Digest: hex.EncodeToString(sum[:]), Size: size}
	if within || size <= mostInline && c.inside+size <= mostInlineAll {
		f.Content = []byte(text)
		c.inside += size
	}
	c.bundle.Files = append(c.bundle.Files, f)
}

func (c *collector) stay(path, why string) {
	if !c.files[path] {
		c.files[path] = true
		c.bundle.Stays = append(c.bundle.Stays, StayingFile{path, why})
	}
}

// secrets are the secrets that a file uses. The default in the file itself, for a value that the
// environment lacks, is not a secret. A short secret counts only in quotes.
type secrets struct {
	all   *redact.Secrets
	short []string
}

func secretsOf(f *pipeline.File, o engine.Options) secrets {
	s := secrets{all: &redact.Secrets{}}
	var open []string
	for _, e := range f.Environment {
		if e.Secret && e.Default != "" {
			open = append(open, e.Default)
		}
	}
	add := func(value string) {
		switch {
		case value == "" || slices.Contains(open, value):
		case len(value) < redact.Shortest:
			s.short = append(s.short, value)
		default:
			s.all.Add(value)
		}
	}
	for _, e := range f.Environment {
		if value, ok := lookup(o)(e.Name); e.Secret && ok {
			add(value)
		}
	}
	for stage := range stagesOf(f) {
		for _, value := range stage.Config.Secrets {
			add(value)
		}
	}
	return s
}

// in reports whether a text contains a secret.
func (s secrets) in(text string) bool {
	return s.all.Result(text) != text || slices.ContainsFunc(s.short, func(v string) bool {
		return text == v || strings.Contains(text, `"`+v+`"`)
	})
}

// isKey reports whether a file is a private key in PEM form.
func isKey(text string) bool { return strings.Contains(text, "PRIVATE KEY-----") }
