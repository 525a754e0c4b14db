package document

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/process/program"
)

// This file starts PDFium, which is compiled to WebAssembly. Its instances have memory of their own and reach no files.
// Making native code of it takes seconds, so that is kept in the user's cache folder. Where pages may not be executable,
// it is interpreted, about 40 times as slow.

// withPDFium makes PDFium ready.
func withPDFium(request) (r reply, err error) {
	_, err = instances()
	return r, err
}

// instances is where instances of PDFium come from.
var instances = sync.OnceValues(func() (pdfium.Pool, error) {
	runtime := wazero.NewRuntimeConfig().WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling).
		WithMemoryLimitPages(memory >> 16).WithDebugInfoEnabled(false)
	start := func(runtime wazero.RuntimeConfig) (pdfium.Pool, error) {
		return webassembly.Init(webassembly.Config{MaxTotal: -1, RuntimeConfig: runtime, FSConfig: wazero.NewFSConfig(), Stdout: io.Discard, Stderr: io.Discard})
	}
	if dir, err := codeFolder(); err == nil {
		cache, errCache := wazero.NewCompilationCacheWithDir(dir)
		if errCache == nil {
			if pool, err := start(runtime.WithCompilationCache(cache)); err == nil {
				writeDigests(dir)
				return pool, nil
			}
		}
	}
	pool, err := start(runtime)
	if err != nil {
		return nil, fmt.Errorf("start PDFium: %w", err)
	}
	return pool, nil
})

// codeFolder returns the folder of native code, which nobody but this user may change. Code that is not as it was written is
// removed.
func codeFolder() (dir string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(cache, "racflow", "pdfium")
	err = cmp.Or(disk.MakeBelow(cache, dir), disk.OwnFiles(dir, nil))
	for _, path := range codeIn(dir) {
		written, _ := os.ReadFile(path + digest) // one that cannot be read is no digest
		if hash, errHash := program.HashFile(path); errHash != nil || hash != string(written) {
			_ = os.Remove(path + digest) // it may be what is missing
			err = cmp.Or(err, os.Remove(path))
		}
	}
	return dir, err
}

// writeDigests writes the digests of code that has none. Without one it is compiled again.
func writeDigests(dir string) {
	for _, path := range codeIn(dir) {
		if _, err := os.Stat(path + digest); err != nil {
			if hash, err := program.HashFile(path); err == nil {
				_ = disk.WriteFile(path+digest, []byte(hash), false)
			}
		}
	}
}

// digest ends the name of a file with the digest of another one.
const digest = ".sha256"

// codeIn lists the files of native code, which wazero names by 64 digits.
func codeIn(dir string) []string {
	paths, _ := filepath.Glob(filepath.Join(dir, "*", strings.Repeat("?", 64))) // it is no bad pattern
	return paths
}
