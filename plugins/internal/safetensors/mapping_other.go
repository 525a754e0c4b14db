//go:build !unix

package safetensors

import "os"

func mapFile(*os.File, int64) (data []byte, ok bool) { return nil, false }

func unmapFile([]byte) {}

func forgetPages([]byte) {}
