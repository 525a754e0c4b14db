package milvus

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

// largeRows is the environment variable for the number of rows that TestLarge loads.
const largeRows = "RACFLOW_TEST_MILVUS_LARGE"

// The most memory of a racflow process whose entries are on a server, with a million entries. The
// process holds the batches in transit, two numbers for each row that a transaction wrote, and the
// number of entries with each word.
const (
	maxFillMemory   = 256 << 20
	maxSearchMemory = 128 << 20
)

// TestLarge fills Milvus Lite and the embedded store with the same rows, those of TestLarge in package local. It
// searches and changes them, and prints times and memory as a table. Each step is a separate process, so that its
// memory is known.
func TestLarge(t *testing.T) {
	if text := os.Getenv(largeTask); text != "" {
		runLargeTask(t, text)
		return
	}
	rows, err := strconv.Atoi(os.Getenv(largeRows))
	if err != nil {
		t.Skipf("takes minutes, and gigabytes of memory: set %s to how many rows", largeRows)
	}
	e := startEngine(t)
	// A starting server reads all rows before it answers.
	config := fmt.Sprintf(`{"address": %q, "index": "FLAT", "call_timeout": "1m", "retry_time": "10m"}`, e.address)
	server := func(step string) figures {
		return task{Step: step, Store: "milvus", Config: config, Rows: rows}.start(t)
	}
	filled := server(stepFill)
	memory := peakMemory(t, e.cmd.Process.Pid)
	searched := server(stepSearch)
	ours := slices.Concat(filled.Lines, searched.Lines, server(stepChange).Lines)
	ours = append(ours, megabytes("memory of the server, filled", memory), megabytes("memory of the server, at most", peakMemory(t, e.cmd.Process.Pid)))
	e.kill()
	restart := time.Now()
	e.start()
	server(stepOpen)
	ours = append(ours, seconds("start of the server, to the first answer", time.Since(restart)), megabytes("on disk", diskUsage(t, filepath.Dir(e.file))))

	folder := t.TempDir()
	embedded := func(step string) figures {
		return task{Step: step, Store: "local", Config: "{}", Folder: folder, Rows: rows}.start(t)
	}
	theirs := embedded(stepFill).Lines
	reference := embedded(stepSearch)
	theirs = append(slices.Concat(theirs, reference.Lines, embedded(stepChange).Lines), megabytes("on disk", diskUsage(t, folder)))
	printFigures(fmt.Sprintf("%d rows", rows), []string{"Milvus Lite 2.5.1", "embedded store"}, ours, theirs)

	if filled.Memory > maxFillMemory || searched.Memory > maxSearchMemory {
		t.Errorf("filling took %d MB of memory and searching %d MB, want %d and %d", filled.Memory>>20, searched.Memory>>20, maxFillMemory>>20, maxSearchMemory>>20)
	}
	for i, best := range reference.Best {
		if !sameRanking(searched.Best[i], best) {
			t.Errorf("the ten best of query %d differ: %v, and %v in the embedded store", i, searched.Best[i], best)
		}
	}
}
