package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/racflow/racflow/engine/internal/process/host"
	"github.com/racflow/racflow/sdk"
)

// embed measures an encoder of a precision through its plugin process.
func (b *bench) embed(model, precision string) (c contender, err error) {
	use, config := "minilm", map[string]any{"precision": precision}
	if model != use {
		use, config["model"] = "encoder", filepath.Join(filepath.Dir(b.data), "random", model)
	}
	text, err := json.Marshal(config)
	if err != nil {
		return c, err
	}
	p, err := b.start(sdk.KindEmbed, use, string(text))
	if err != nil {
		return c, err
	}
	answers := map[string][][]float32{}
	c = contender{answers: answers, tasks: map[string]func() (reply, error){}}
	for _, length := range []string{"short", "long"} {
		texts, err := b.lines(length + ".txt")
		if err != nil {
			return c, err
		}
		if answers[length], err = p.Embed(b.ctx, sdk.RolePassage, texts[:8]); err != nil {
			return c, err
		}
		c.tasks[length] = func() (reply, error) {
			start := time.Now()
			_, err := p.Embed(b.ctx, sdk.RolePassage, texts)
			n := float64(len(texts))
			return reply{"n": n, "ms": milliseconds(start) / n}, err
		}
	}
	return c, nil
}

// vectors writes NAME.f32 for each NAME.txt or NAME.tsv that the measures want
// vectors of, unless it is there already.
func (b *bench) vectors() error {
	p, err := b.start(sdk.KindEmbed, "minilm", "{}")
	if err != nil {
		return err
	}
	for _, name := range []string{"texts", "queries"} {
		texts, err := b.lines(name + ".txt")
		if err != nil {
			return err
		}
		if err := b.write(p, name, texts); err != nil {
			return err
		}
	}
	for _, name := range []string{"train", "test"} {
		texts, _, err := b.labelled(name + ".tsv")
		if err != nil {
			return err
		}
		if err := b.write(p, name, texts); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) write(p *host.Process, name string, texts []string) error {
	if _, err := os.Stat(b.path(name + ".f32")); err == nil {
		return nil
	}
	partial := b.path(name + ".f32.part")
	f, err := os.Create(partial)
	if err != nil {
		return err
	}
	for len(texts) > 0 && err == nil {
		batch := texts[:min(512, len(texts))]
		texts = texts[len(batch):]
		var vectors [][]float32
		if vectors, err = p.Embed(b.ctx, sdk.RolePassage, batch); err != nil {
			break
		}
		for _, v := range vectors {
			err = errors.Join(err, binary.Write(f, binary.LittleEndian, v))
		}
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(partial, b.path(name+".f32"))
}
