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

// This file starts PDFium, which is compiled to WebAssembly. Its instances have their own memory and cannot reach
// files. Compiling it to native code takes seconds, so the code is stored in the user's cache folder. Where pages may
// not be executable, PDFium is interpreted, about 40 times as slowly.

// withPDFium makes PDFium ready.
func withPDFium(request) (r reply, err error) {
	_, err = instances()
	return r, err
}

// instances creates instances of PDFium.
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

// codeFolder returns the folder of native code, which only this user may change. It removes code that has changed since
// it was written.
func codeFolder() (dir string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(cache, "racflow", "pdfium")
	err = cmp.Or(disk.MakeBelow(cache, dir), disk.OwnFiles(dir, nil))
	for _, path := range codeIn(dir) {
		written, _ := os.ReadFile(path + digest) // an unreadable file has no digest
		if hash, errHash := program.HashFile(path); errHash != nil || hash != string(written) {
			_ = os.Remove(path + digest) // the digest may be the missing file
			err = cmp.Or(err, os.Remove(path))
		}
	}
	return dir, err
}

// writeDigests writes the digests of code without one. Code without a digest is compiled again.
func writeDigests(dir string) {
	for _, path := range codeIn(dir) {
		if _, err := os.Stat(path + digest); err != nil {
			if hash, err := program.HashFile(path); err == nil {
				_ = disk.WriteFile(path+digest, []byte(hash), false)
			}
		}
	}
}

// digest is the suffix of the file with another file's digest.
const digest = ".sha256"

// codeIn lists the files of native code, whose names wazero makes of 64 digits.
func codeIn(dir string) []string {
	paths, _ := filepath.Glob(filepath.Join(dir, "*", strings.Repeat("?", 64))) // the pattern is valid
	return paths
}
