package minilm

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/racflow/racflow/plugins/internal/simd"
	"github.com/racflow/racflow/plugins/internal/wordpiece"
)

// weightsFile is the name of the weights in a model's folder.
const weightsFile = "model.safetensors"

// Model is a loaded encoder. It is safe for concurrent use.
type Model struct {
	tokenizer   *wordpiece.Tokenizer
	limit       int // tokens of a text
	encoder     *encoder
	fingerprint string
	workspaces  sync.Pool // of *workspace
}

// Load reads the model in folder dir. model.safetensors and vocab.txt must be
// there; config.json, sentence_bert_config.json, tokenizer_config.json,
// modules.json and 1_Pooling/config.json are read where they exist; without them the
// model counts as all-MiniLM-L6-v2, which reads 256 tokens. A model that the package
// cannot compute, or a damaged file, is an error that names the file.
func Load(dir string) (*Model, error) { return load(dir, simd.Best()) }

func load(dir string, kernel *simd.Kernel) (*Model, error) {
	c, err := readConfig(dir)
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	// Raise the number where the same files give other vectors than before.
	fmt.Fprintf(sum, "minilm 1 %+v\n", c)

	m := &Model{limit: c.MaxTokens}
	err = withFile(dir, "vocab.txt", func(f *os.File, _ int64) error {
		m.tokenizer, err = wordpiece.New(io.TeeReader(f, sum), f.Name())
		return err
	})
	if err != nil {
		return nil, err
	}
	err = withFile(dir, weightsFile, func(f *os.File, size int64) error {
		// The sum takes longer than the rest, so it is computed at the same time.
		summed := make(chan error, 1)
		go func() {
			_, err := io.Copy(sum, io.NewSectionReader(f, 0, size))
			summed <- err
		}()
		m.encoder, err = readEncoder(f, size, c, m.tokenizer.Size(), kernel)
		if sumErr := <-summed; err == nil && sumErr != nil {
			err = fmt.Errorf("read the weights: %w", sumErr)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	m.fingerprint = hex.EncodeToString(sum.Sum(nil))
	m.workspaces.New = func() any { return newWorkspace(kernel) }
	return m, nil
}

// readEncoder maps the weights and packs the matrices.
func readEncoder(f *os.File, size int64, c config, vocabulary int, kernel *simd.Kernel) (*encoder, error) {
	file, err := openMapping(f, size)
	if err != nil {
		return nil, fmt.Errorf("read the weights: %w", err)
	}
	weights, err := openTensors(file.data, f.Name())
	if err != nil {
		return nil, err
	}
	e, err := newEncoder(c, vocabulary, weights, kernel)
	if err != nil {
		return nil, err
	}
	e.file = file
	file.forget()
	return e, nil
}

// withFile calls use with an open file of the model.
func withFile(dir, name string, use func(f *os.File, size int64) error) error {
	f, err := os.Open(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) && name == weightsFile {
		if err := otherWeights(dir); err != nil {
			return err
		}
	}
	if err != nil {
		return fmt.Errorf("open the model: %w: give the folder that holds model.safetensors and vocab.txt", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("open the model: %w", err)
	}
	return use(f, info.Size())
}

// otherWeights is an error with advice where the weights have another format.
func otherWeights(dir string) error {
	for _, other := range []struct{ name, advice string }{
		{weightsFile + ".index.json", "weights in several files are not supported: save the model as one model.safetensors"},
		{"pytorch_model.bin", "weights of PyTorch are not supported: save the model as model.safetensors"},
	} {
		path := filepath.Join(dir, other.name)
		if _, err := os.Stat(path); err == nil {
			return fmt.Errorf("%s: %s", path, other.advice)
		}
	}
	return nil
}

// Dim returns the number of floats in a vector.
func (m *Model) Dim() int { return m.encoder.Hidden }

// Fingerprint returns the SHA-256, in hexadecimal, of what the vectors depend
// on: weights, vocabulary and configuration. Vectors of equal fingerprints may
// be compared; they differ at most by rounding, between machines.
func (m *Model) Fingerprint() string { return m.fingerprint }
